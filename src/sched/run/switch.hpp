// SPDX-License-Identifier: MIT
#pragma once

// sched/run/switch.hpp: from one fiber to the next, or to the carrier's loop.
//
// The side that is left may leave an action for after the switch (sched/fiber/after_switch.hpp).
// The side that continues runs it first, still inside the processor's ownership, then leaves that.
//
// A fiber takes along: its registers and floating-point control words (on its stack), errno (here),
// and the exception globals if they are not zero (keeping_exceptions()).

#include "arch/context.hpp"
#include "os/errno.hpp"
#include "sched/fiber/after_switch.hpp"
#include "sched/fiber/fiber.hpp"
#include "sched/run/carrier.hpp"
#include "sched/run/processor.hpp"

namespace ums::sched {

// The caller is on `self`'s stack and inside c's processor. Continues `next`, or the loop if it is
// null. Returns on whichever carrier resumes `self`, outside.
UMS_ALWAYS_INLINE void switch_to(carrier* c, fiber* self, fiber* next,
                                 after_switch* after) noexcept {
    const int kept_errno = os::read_errno(c->errno_at);
    c->running.set(next);
    arch::start_switch(self->shadow, next != nullptr ? next->shadow : c->loop_shadow);
    const arch::arrival a =
        arch::switch_context(self->context, next != nullptr ? next->context : c->loop, c, after);
    arch::finish_switch(self->shadow);
    c = static_cast<carrier*>(a.carrier);
    if (a.after != nullptr) [[unlikely]] {  // Not after a yield, which is the shortest way.
        const auto* h = static_cast<const after_switch*>(a.after);
        h->finish(*h, *c);
    }
    os::write_errno(c->errno_at, kept_errno);
    c->leave(self->race);
}

// Calls `switching`, with the exception globals put aside for the time in which another fiber may
// use this kernel thread's, and puts them back on whichever kernel thread it returns on.
template <class F>
[[gnu::noinline]] auto keeping_exceptions(F switching) noexcept {
    struct kept {
        arch::exception_state state = this_carrier()->exceptions->take();
        ~kept() { this_carrier()->exceptions->put(state); }
    } keep;
    return switching();
}

}  // namespace ums::sched
