// SPDX-License-Identifier: MIT
#pragma once

// os/errno.hpp: a kernel thread's errno, which several fibers share in turn.
//
// These are plain accesses that ThreadSanitizer does not see, just as it does not see the C
// library's. In its no_sync mode the kernel thread that fibers share does not order them, and a
// fiber that reads its own errno after a system call does not race with the switch that puts the
// next fiber's errno in place.

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
