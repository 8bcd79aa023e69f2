// SPDX-License-Identifier: MIT
#pragma once

// sched/handover.hpp: what must happen only when the registers of the side that is left are saved.
//
// Complete its park, put it into a queue that others can see, free its stack. The side that is left fills
// in its carrier's one handover, inside the ownership; the side that continues runs it first thing,
// still inside. It lies in the carrier and not on the stack that is left: that may be running again,
// or be free, before the handover is over.

#include <cstdint>

namespace ums::sched {

struct carrier;
struct fiber;

struct handover {
    // By reference: a copy right after the stores would be wider than they are, and wait for them.
    void (*finish)(const handover& h, carrier& c) noexcept = nullptr;
    fiber* self = nullptr;  // Who was left.
    void* other = nullptr;  // Whom or what it concerns, if any.
    std::uintptr_t word = 0;
};

}  // namespace ums::sched
