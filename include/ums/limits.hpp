// SPDX-License-Identifier: MIT
#pragma once

// ums/limits.hpp: how long an operation may wait: until a deadline, and until a stop.
//
// A limits object converts from either, or takes both in braces. Without limits the wait has no
// end:
//
//   stream.read(buffer);                                    // as long as it takes
//   stream.read(buffer, ums::deadline_after(5s));
//   stream.read(buffer, token);                             // a std::stop_token
//   stream.read(buffer, {ums::deadline_after(5s), token});
//
// An operation that need not wait succeeds, even after its deadline or a stop. An operation that
// gives up fails with timed_out or operation_canceled.
//
// Lifetime: refers to the token, which must outlive the call.

#include <stop_token>

#include "ums/deadline.hpp"

namespace ums {

struct limits {
    limits() noexcept = default;
    limits(deadline u) noexcept : until{u} {}
    limits(const std::stop_token& s) noexcept : stop{&s} {}
    limits(deadline u, const std::stop_token& s) noexcept : until{u}, stop{&s} {}

    deadline until = deadline::max();
    const std::stop_token* stop = nullptr;
};

}  // namespace ums
