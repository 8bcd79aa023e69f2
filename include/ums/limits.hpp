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
// Lifetime: refers to a token that has a name, which must outlive the object; owns a temporary one,
//           such as source.get_token().

#include <stop_token>
#include <utility>

#include "ums/deadline.hpp"

namespace ums {

struct limits {
    limits() noexcept = default;
    limits(deadline u) noexcept : until{u} {}
    limits(const std::stop_token& s) noexcept : stop{&s} {}
    limits(deadline u, const std::stop_token& s) noexcept : until{u}, stop{&s} {}
    limits(std::stop_token&& s) noexcept : stop{&owned_}, owned_{std::move(s)} {}
    limits(deadline u, std::stop_token&& s) noexcept
        : until{u}, stop{&owned_}, owned_{std::move(s)} {}
    limits(const limits& other) noexcept
        : until{other.until},
          stop{other.stop == &other.owned_ ? &owned_ : other.stop},
          owned_{other.owned_} {}
    limits& operator=(const limits& other) noexcept {
        until = other.until;
        owned_ = other.owned_;
        stop = other.stop == &other.owned_ ? &owned_ : other.stop;
        return *this;
    }

    deadline until = (deadline::max)();
    const std::stop_token* stop = nullptr;

private:
    // The library reads only what stands above, because a program may have been compiled before
    // this was here.
    std::stop_token owned_;
};

}  // namespace ums
