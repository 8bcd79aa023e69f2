// SPDX-License-Identifier: MIT
#pragma once

// ums/last_error.hpp: errno, where a wait may lie between.
//
// errno belongs to the fiber, but its place is the kernel thread's, and compilers keep that place: a function that uses errno
// both before and after a wait may use the one of the thread that the fiber has left. These two look the place up
// anew each time (docs/thread-state.md).
//
// Cost: a call.

#include "ums/export.hpp"

namespace ums {

// The error number of the last call that failed on the calling fiber or plain thread.
[[nodiscard]] UMS_EXPORT int last_error() noexcept;
UMS_EXPORT void set_last_error(int number) noexcept;

}  // namespace ums
