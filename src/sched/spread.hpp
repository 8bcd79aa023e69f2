// SPDX-License-Identifier: MIT
#pragma once

// sched/spread.hpp: the running processors of a cluster on CPUs of their own.
//
// The kernel wakes a thread on the waker's CPU now and then, when all others look busy at that moment, and may leave it
// there, beside one that computes, for 100 ms: half of the throughput of two processors. So a processor notes its CPU
// when a slice is over and, when that has changed or it comes from being idle, or 4,096 slices have passed, looks whether
// another running processor of its cluster has noted the same. The one that finds it so, which is the one that runs, moves to a CPU that none of them
// has noted, and lets the kernel place it again from there. Nothing is done where processors are pinned, or where there are
// more of them than CPUs.
//
// Who comes to a CPU notes it, then looks, with a fence in between: of two that come at once one sees the other. A
// note may be out of date, and a move in vain then; it changes a CPU again, so the next slice's end looks again. The look
// from time to time is for notes that were out of date and for masks that were narrow.
//
// Cost: sched_getcpu() a slice (a load, where the C library has registered rseq); three system calls a move.

#include <cstdint>

namespace ums::sched {

class processor;

struct spread {
    static constexpr std::uint64_t period = 4096;  // Slices.

    // `p`, which calls it, runs on another CPU than it noted.
    static void arrived(processor& p, int cpu) noexcept;
};

}  // namespace ums::sched
