// SPDX-License-Identifier: MIT
#pragma once

// capi/posix_errno.hpp: results as POSIX has them, -1 and errno.
//
// errno belongs to the kernel thread, and a wait may have changed that. The compiler takes its
// address for a constant, so only these functions use it, which are not inlined.

#include <cerrno>

#include "base/assert.hpp"
#include "os/errno.hpp"

namespace ums::capi {

// What a function of POSIX returns, for a value or a negative error number.
template <class T>
[[gnu::noinline]] T in_errno(T result) noexcept {
    if (result >= 0) return result;
    UMS_DEBUG_ASSERT(result > -4096, "errno would get what is no error number");
    os::write_errno(&errno, static_cast<int>(-result));
    return -1;
}

// A value or a negative error number, for what a function of POSIX has just returned.
[[gnu::noinline]] inline long from_errno(long result) noexcept {
    UMS_DEBUG_ASSERT(result >= -1, "a function of POSIX has returned an error number");
    return result >= 0 ? result : -os::read_errno(&errno);
}

}  // namespace ums::capi
