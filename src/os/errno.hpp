// SPDX-License-Identifier: MIT
#pragma once

// os/errno.hpp: a kernel thread's errno, which several fibers share in turn.
//
// Plain accesses that ThreadSanitizer does not see, as it does not see the C library's: in its no_sync mode
// fibers are not ordered by the kernel thread they share, and a fiber that asks for its own errno after a
// system call is no race with the switch that puts the next one's in place.

namespace ums::os {

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UMS_ERRNO_ACCESS __attribute__((noinline, disable_sanitizer_instrumentation))
#endif
#endif
#if !defined(UMS_ERRNO_ACCESS)
#define UMS_ERRNO_ACCESS
#endif

UMS_ERRNO_ACCESS inline int read_errno(const int* at) noexcept { return *at; }
UMS_ERRNO_ACCESS inline void write_errno(int* at, int value) noexcept { *at = value; }

#undef UMS_ERRNO_ACCESS

}  // namespace ums::os
