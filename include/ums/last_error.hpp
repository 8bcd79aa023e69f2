// SPDX-License-Identifier: MIT
#pragma once

// ums/last_error.hpp: errno for code that may wait in between.
//
// errno belongs to the fiber, but its address belongs to the kernel thread, and compilers keep that
// address. So a function that uses errno both before and after a wait may read the errno of the
// thread that the fiber has left. These two functions look the address up anew each time
// (docs/thread-state.md).
//
// Blocking: never.
// Cost:     a call.

#include "ums/export.hpp"

namespace ums {

// Returns the error number of the last call that failed on the calling fiber or plain thread.
[[nodiscard]] UMS_EXPORT int last_error() noexcept;
// Sets the caller's errno.
UMS_EXPORT void set_last_error(int number) noexcept;

}  // namespace ums
