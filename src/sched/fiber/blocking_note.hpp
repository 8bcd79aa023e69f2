// SPDX-License-Identifier: MIT
#pragma once

// sched/fiber/blocking_note.hpp: what is known of a fiber's calls that block in the kernel.

#include <cstdint>

#include "base/atomic.hpp"
#include "os/clock.hpp"

namespace ums::sched {

// Written by the fiber itself; a detector reads it, with a claim on the fiber's carrier.
struct blocking_note {
    base::owned<std::uint32_t> depth;  // Of ums::blocking() regions: in one it holds a permit.
    base::owned<bool> has_permit;      // The region's own, and not that of ums::keep_carrier.

    base::owned<std::uint32_t> uninterruptible;  // The depth of ums::uninterruptible() sections.
    base::owned<bool> stop_wanted;               // The fiber should have been stopped inside one.
    // The level of its habit of blocking unmarked (sched/block/habit.hpp); 0: it was never found
    // blocked.
    base::owned<std::uint32_t> level;
    // When it got a processor after a stop, until it is found blocked; otherwise 0.
    base::owned<os::nanoseconds> went_on;

    [[nodiscard]] bool holds_permit() const noexcept { return depth.get() != 0; }
};

}  // namespace ums::sched
