// SPDX-License-Identifier: MIT
#pragma once

// ums/mode.hpp: how a worker is switched to, decided once for the process.
//
// user:  the scheduler's kernel thread loads the worker's stack and thread pointer.
// futex: the scheduler's kernel thread wakes the worker's own and sleeps until that gives back.

namespace ums::scheduling {

enum class switch_mode : unsigned char { user, futex };

// Reads UMS_FSGSBASE at the first call.
switch_mode mode() noexcept;

// The mode and the reason, in a line.
const char* describe_mode() noexcept;

}  // namespace ums::scheduling
