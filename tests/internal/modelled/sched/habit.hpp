// SPDX-License-Identifier: MIT
#pragma once

// For models, in place of sched/habit.hpp: nobody learns.

#include "sched/fiber.hpp"

namespace ums::sched {

struct habit {
    static void found(fiber&) noexcept {}
    static void went_on(fiber&) noexcept {}
    [[nodiscard]] static os::nanoseconds grace(const fiber&) noexcept { return 0; }
};

}  // namespace ums::sched
