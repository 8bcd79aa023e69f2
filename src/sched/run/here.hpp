// SPDX-License-Identifier: MIT
#pragma once

// sched/run/here.hpp: where the caller runs, from one look-up.
//
// This is valid until the calling fiber may switch: then it may continue on another carrier, so
// look again.

#include "sched/fiber/fiber.hpp"
#include "sched/run/carrier_core.hpp"

namespace ums::sched {

struct here {
    carrier_core* const on;  // Null for a plain thread.
    fiber* const self;       // Null for a plain thread, or a carrier's loop.

    UMS_ALWAYS_INLINE here() noexcept : here{this_carrier_core()} {}
    explicit UMS_ALWAYS_INLINE here(carrier_core* c) noexcept
        : on{c}, self{c != nullptr ? c->running.get() : nullptr} {}

    // The processor that the carrier holds, or null. A hint: the processor may be handed off at any
    // time.
    [[nodiscard]] processor* at() const noexcept {
        return on != nullptr ? on->proc.get() : nullptr;
    }

    // Enters that processor to work on it. Requires a fiber. Returns null, without entering, if the
    // carrier no longer holds one.
    [[nodiscard]] UMS_ALWAYS_INLINE processor* enter() const noexcept { return on->enter(); }
    UMS_ALWAYS_INLINE void leave() const noexcept { on->leave(self->race); }
};

}  // namespace ums::sched
