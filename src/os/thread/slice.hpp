// SPDX-License-Identifier: MIT
#pragma once

// os/thread/slice.hpp: how long the kernel lets a thread run before another that wants its CPU.

#include "os/clock.hpp"

namespace ums::os {

// Asks for slices of `length`, from 100 us to 100 ms, for the calling thread. A thread that wakes
// waits for the rest of the slice of the running one. So shorter slices mean that the program's
// other threads that share the CPU get it sooner, with more switches while they do; the thread's
// share of the CPU does not change. Threads and processes that it creates inherit the length.
// Rejected: SCHED_RESET_ON_FORK, which takes their nice value, too, and which an ordinary user
// cannot take back: pthread_setschedparam() then fails.
//
// Returns false, and nothing has changed, if the kernel cannot (before Linux 6.12) or may not; or
// if the thread has a policy of its own (real-time, idle). Makes two system calls.
bool ask_for_slice(nanoseconds length) noexcept;

// Takes back what the calling thread has inherited of such a slice.
void forget_slice() noexcept;

// The calling thread's slice; 0: not known.
nanoseconds asked_slice() noexcept;

}  // namespace ums::os
