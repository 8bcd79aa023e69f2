// SPDX-License-Identifier: MIT
#pragma once

// sched/block/habit.hpp: fibers that block in the kernel often give up their processor early.
//
// A fiber whose unmarked call has ended runs on for a while without a processor: its grace. If it
// blocks again within that time, no processor was troubled for it, and no detector had to find it.
// It learns how long the grace is. Each block that had to be found raises the level, and so does
// each stop that was useless, because the fiber blocked again soon after it had got a processor. A
// stop after which the fiber computed on lowers it.
//
// A new fiber begins with what other fibers of the same entry have learned, from its first block
// on: a server's fibers, one for each request, are all alike in this. The entry is the function
// that the fiber was started with, according to its type: each lambda is one. All fibers that are
// started by function pointers of the same signature, as in C, share one entry.
//
// Cost: none, except where a block was found, or a fiber is stopped. The table of entries is lossy:
// a later entry may take the place of another.

#include <cstdint>

#include "os/clock.hpp"

namespace ums::sched {

struct fiber;

struct habit {
    static constexpr std::uint32_t highest = 5;
    static constexpr os::nanoseconds shortest_grace = 20'000;
    // A fiber that blocks this soon after it was given a processor need not have been stopped.
    static constexpr os::nanoseconds soon = 2 * (shortest_grace << highest);

    // The fiber was found blocked, unmarked. The caller holds a claim on its carrier.
    static void found(fiber& f) noexcept;

    // It was stopped, and continues with a processor. Called on its own thread.
    static void went_on(fiber& f) noexcept;

    // How long it may run without a processor.
    [[nodiscard]] static os::nanoseconds grace(const fiber& f) noexcept;

    // What fibers of this entry have learned. For tests.
    [[nodiscard]] static std::uint32_t of_entry(void (*run)(void*)) noexcept;
};

}  // namespace ums::sched
