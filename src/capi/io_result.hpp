// SPDX-License-Identifier: MIT
#pragma once

// capi/io_result.hpp: connects an operation of I/O and its C interface.

#include "base/assert.hpp"
#include "capi/call.hpp"
#include "ums/limits.hpp"
#include "ums/result.hpp"

namespace ums::capi {

// The result of an operation, in C's form.
template <class T>
long to_c(const result<T>& r) noexcept {
    if (!r) {
        UMS_DEBUG_ASSERT(r.error().value() > 0, "a failed operation would look like a success");
        return -r.error().value();
    }
    if constexpr (std::is_void_v<T>)
        return 0;
    else {
        UMS_DEBUG_ASSERT(static_cast<long>(*r) >= 0, "a result would look like an error number");
        return static_cast<long>(*r);
    }
}

// Calls operation(limits).
template <class R, class Operation>
R until(std::int64_t deadline, const ums_stop_t* stop, Operation operation) noexcept {
    limits l{to_deadline(deadline)};
    if (stop == nullptr) return static_cast<R>(to_c(operation(l)));
    const std::stop_token token = stop->source.get_token();
    l.stop = &token;
    return static_cast<R>(to_c(operation(l)));
}

}  // namespace ums::capi
