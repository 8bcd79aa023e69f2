// SPDX-License-Identifier: MIT
#pragma once

// os/slice.hpp: how long the kernel lets a thread run before another that wants its CPU.

#include "os/clock.hpp"

namespace ums::os {

// Asks for slices of `length` for the calling thread, of 100 us to 100 ms. A thread that wakes waits for the rest of the slice of
// the one that runs, so shorter ones mean that the others of this program, which share the CPU, get it sooner, and more
// switches while they do; no share of the CPU changes. Threads and processes that it creates do not inherit it: they
// begin with the kernel's own (SCHED_RESET_ON_FORK).
//
// False, and nothing has changed: the kernel cannot (before Linux 6.12) or may not, or the thread has a policy of its
// own (real-time, idle), or a negative nice value, which its children would lose. Two system calls.
bool ask_for_slice(nanoseconds length) noexcept;

// The calling thread's; 0: not known.
nanoseconds asked_slice() noexcept;

}  // namespace ums::os
