// SPDX-License-Identifier: MIT
#pragma once

// sched/run/spread.hpp: keeps the running processors of a cluster on CPUs of their own.
//
// The kernel wakes a thread on the waker's CPU now and then, when all other CPUs look busy at that
// moment, and may leave it there, beside one that computes, for 100 ms: that costs half of the
// throughput of two processors. So a processor notes its CPU when a round is over. If the CPU has
// changed, or the processor has been idle, or 4,096 rounds have passed, it looks whether another
// running processor of its cluster has noted the same CPU. If so, it moves to a CPU that none of
// them has noted, and lets the kernel place it again from there. Nothing is done where processors
// are pinned, or where there are more of them than CPUs.
//
// A processor that arrives on a CPU notes it, then looks, with a fence in between: if two arrive
// at the same time, one sees the other. If a note is out of date, the move gains nothing. But it
// changes the CPU, so the processor looks again at the end of the next round. The look from time
// to time is for notes that were out of date and for masks that were narrow.
//
// Cost: one sched_getcpu() for each round (a load, if the C library has registered rseq); three
// system calls for each move.

#include <cstdint>

namespace ums::sched {

class processor;

struct spread {
    static constexpr std::uint64_t period = 4096;  // In rounds.

    // `p`, which calls this, runs on another CPU than the one it noted.
    static void arrived(processor& p, int cpu) noexcept;
};

}  // namespace ums::sched
