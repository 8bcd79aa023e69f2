// SPDX-License-Identifier: MIT
#pragma once

// support/waiting.hpp: returns when a fiber waits. Yielding some times instead is no promise: with
// two processors the other fiber may not have run at all by then.

#include <algorithm>
#include <vector>

#include "ums/fiber.hpp"
#include "ums/metrics.hpp"
#include "ums/this_fiber.hpp"

// Yields until `f` waits or has ended. It must not be woken meanwhile by anybody else.
inline void until_waits(const ums::fiber& f) {
    for (const ums::fiber_id id = f.get_id();;) {
        const std::vector<ums::fiber_info> all = ums::fibers();
        const auto it =
            std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.id == id; });
        // One that begins may be missing.
        if (it != all.end() && it->state != ums::fiber_state::active) return;
        ums::this_fiber::yield();
    }
}
