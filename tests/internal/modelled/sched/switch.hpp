// SPDX-License-Identifier: MIT
#pragma once

// For models, in place of sched/switch.hpp: the fiber is left for the loop, on the same strand, and
// never comes back there.

#include "sched/carrier.hpp"
#include "sched/fiber.hpp"

namespace ums::sched {

[[noreturn]] void switch_to(carrier* c, fiber* self, fiber* next, after_switch* after) noexcept;

}  // namespace ums::sched
