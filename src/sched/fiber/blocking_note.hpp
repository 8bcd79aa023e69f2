// SPDX-License-Identifier: MIT
#pragma once

// sched/fiber/blocking_note.hpp: what is known of a fiber's calls that block in the kernel.

#include <cstdint>

#include "base/atomic.hpp"

namespace ums::sched {

// Written by the fiber itself; a detector reads it, with a claim on the fiber's carrier.
struct blocking_note {
    base::owned<std::uint32_t> depth;  // Of ums::blocking() regions: in one it holds a permit.
    base::owned<bool> has_permit;      // The region's own, and not that of ums::keep_carrier.

    base::owned<std::uint32_t> uninterruptible;  // The depth of ums::uninterruptible() sections.
    base::owned<bool> stop_wanted;               // The fiber should have been stopped inside one.

    [[nodiscard]] bool holds_permit() const noexcept { return depth.get() != 0; }
};

}  // namespace ums::sched
