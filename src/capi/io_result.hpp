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
    UMS_DEBUG_ASSERT(r || r.error().value() > 0, "a failed operation would look like a success");
    if (!r) return -r.error().value();
    long n = 0;
    if constexpr (!std::is_void_v<T>) n = static_cast<long>(*r);
    UMS_DEBUG_ASSERT(n >= 0, "a result would look like an error number");
    return n;
}

// Calls operation(arguments..., limits).
template <class Operation, class... Arguments>
long until(std::int64_t deadline, const ums_stop_t* stop, Operation operation,
           Arguments... arguments) noexcept {
    limits l{to_deadline(deadline)};
    std::stop_token token;
    if (stop != nullptr) {
        token = stop->source.get_token();
        l.stop = &token;
    }
    return to_c(operation(arguments..., l));
}

}  // namespace ums::capi
