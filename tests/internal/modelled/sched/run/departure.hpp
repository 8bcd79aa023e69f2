// SPDX-License-Identifier: MIT
#pragma once

// For models, in place of sched/run/departure.hpp: the strand leaves the fiber for the loop, and
// never comes back to it there.

#include "sched/fiber/fiber.hpp"
#include "sched/run/carrier_core.hpp"

namespace ums::sched {

#define UMS_INLINED

[[noreturn]] void switch_to_loop(carrier_core* c, fiber* self, after_switch* after) noexcept;

template <bool keeps>
struct departure {
    after_switch* then(after_switch::action* finish) noexcept { return on->then(finish, self); }
    [[noreturn]] void to_loop(after_switch* after) noexcept { switch_to_loop(on, self, after); }

    carrier_core* on;
    fiber* self;
};

}  // namespace ums::sched
