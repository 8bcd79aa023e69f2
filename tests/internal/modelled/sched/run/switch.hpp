// SPDX-License-Identifier: MIT
#pragma once

// For models, in place of sched/run/switch.hpp: the strand leaves the fiber for the loop, and never
// comes back to it there.

#include "sched/fiber/fiber.hpp"
#include "sched/run/carrier.hpp"

namespace ums::sched {

[[noreturn]] void switch_to(carrier* c, fiber* self, fiber* next, after_switch* after) noexcept;

}  // namespace ums::sched
