// SPDX-License-Identifier: MIT
#pragma once

// For models, in place of sched/run/departure.hpp: the strand leaves the fiber for the loop, and
// never comes back to it there.

#include "sched/fiber/fiber.hpp"
#include "sched/run/carrier.hpp"

namespace ums::sched {

#define UMS_INLINED

[[noreturn]] void switch_to_loop(carrier* c, fiber* self, after_switch* after) noexcept;

template <bool keeps>
struct departure {
    after_switch* then(void (*finish)(const after_switch&, carrier&) noexcept) noexcept {
        return on->then(finish, self);
    }
    [[noreturn]] void to_loop(after_switch* after) noexcept { switch_to_loop(on, self, after); }

    carrier* on;
    fiber* self;
};

}  // namespace ums::sched
