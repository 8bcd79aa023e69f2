// SPDX-License-Identifier: MIT
#pragma once

// sched/habit.hpp: who blocks in the kernel again and again gives its processor up early.
//
// A fiber whose unmarked call has ended runs on for a while without a processor: its grace. If it blocks again within
// that, no processor was troubled for it, and nobody had to find it. How long that is, it learns: the level is raised by
// each block that had to be found, and by each stop that was of no use, because the fiber blocked again soon after it had
// got a processor. It is lowered by a stop after which the fiber computed on.
//
// A new fiber begins with what others of the same entry have learned, from its first block on: a server's fibers, one for
// each request, are all the same in this. The entry is the function that the fiber was started with, as its type has it:
// one for each lambda. All fibers that are started by function pointers of one signature, as C's are, share one.
//
// Cost: none but where a block was found, or a fiber is stopped. The entries' table is lossy: who comes later may take
// the place of another.

#include <cstdint>

#include "os/clock.hpp"

namespace ums::sched {

struct fiber;

struct habit {
    static constexpr std::uint32_t highest = 5;
    static constexpr os::nanoseconds shortest_grace = 20'000;
    // A fiber that blocks this soon after it was given a processor need not have been stopped.
    static constexpr os::nanoseconds soon = 2 * (shortest_grace << highest);

    // The fiber was found blocked, unmarked. By who has a claim on its carrier.
    static void found(fiber& f) noexcept;

    // It was stopped, and goes on with a processor. On its own thread.
    static void went_on(fiber& f) noexcept;

    // For how long it may run without a processor.
    [[nodiscard]] static os::nanoseconds grace(const fiber& f) noexcept;

    // What fibers of this entry have learned. For tests.
    [[nodiscard]] static std::uint32_t of_entry(void (*run)(void*)) noexcept;
};

}  // namespace ums::sched
