// SPDX-License-Identifier: MIT
#pragma once

// For models, in place of sched/block/habit.hpp: nothing is learnt, and what is found blocked is
// what a detector has seen.

#include "sched/fiber/fiber.hpp"

namespace ums::sched {

struct habit {
    static void found(fiber& f) noexcept {
        UMS_ASSERT(f.is_seen, "a fiber is found blocked that no detector has seen");
    }
    static void went_on(fiber&) noexcept {}
    [[nodiscard]] static os::nanoseconds grace(const fiber&) noexcept { return 0; }
};

}  // namespace ums::sched
