// SPDX-License-Identifier: MIT
#pragma once

// sched/fiber/after_switch.hpp: the action that must wait until the registers of the side that is
// left are saved.
//
// It completes a park, puts the fiber into a queue that others can see, or frees its stack. The
// side that is left fills in its carrier's one after_switch, inside the ownership; the side that
// continues runs it first, still inside. It lies in the carrier and not on the stack that is left,
// because that stack may be running again, or be free, before the action is over.

#include <cstdint>

namespace ums::sched {

struct carrier_core;
struct fiber;

struct after_switch {
    // Passed by reference: a copy right after the stores would be wider than they are, and wait for
    // them.
    using action = void(const after_switch& h, carrier_core& c) noexcept;
    action* finish = nullptr;
    fiber* self = nullptr;  // The fiber that was left.
    void* other = nullptr;  // The other fiber or object that the action concerns, if any.
    std::uintptr_t word = 0;
};

}  // namespace ums::sched
