// SPDX-License-Identifier: MIT
#pragma once

// sched/run/departure.hpp: the one way the running fiber leaves its carrier: for the next fiber, or
// for the carrier's loop.
//
//   depart(c, self, [](auto leaving) UMS_INLINED {
//       processor* p = leaving.enter();
//       fiber* next = p->pick();
//       leaving.record(*p, trace_event::yield, next);
//       leaving.to(next, leaving.then(&finish));  // Returns when the fiber runs again.
//   });
//
// A fiber takes along: its registers and floating-point control words (on its stack), errno (to()),
// the exception globals if they are not zero (depart()), and its carrier if it keeps that
// (sched/block/keep.hpp).
//
// The side that is left may leave an action for after the switch (sched/fiber/after_switch.hpp).
// The side that continues runs it first, still inside the processor's ownership, then leaves that.
//
// Cost: one test of two words tells the usual fiber from one that takes exceptions or its carrier
// along, because a kept carrier's exceptions look active at all times. So the code is there once
// for each kind, and the usual kind's has no test of the others.

#include "arch/context.hpp"
#include "os/errno.hpp"
#include "sched/block/keep.hpp"
#include "sched/fiber/after_switch.hpp"
#include "sched/fiber/fiber.hpp"
#include "sched/run/carrier_core.hpp"
#include "sched/run/processor.hpp"

namespace ums::sched {

// For a lambda whose call must cost nothing.
#define UMS_INLINED __attribute__((always_inline))

// The departure of the fiber `self` from the carrier `on`. All of it is inlined, because it begins
// in the processor's TSan context and ends in the fiber's.
template <bool keeps_carrier>
class departure {
public:
    static constexpr bool keeps = keeps_carrier;

    UMS_ALWAYS_INLINE departure(carrier_core* c, fiber* f) noexcept : on{c}, self{f} {}

    // Enters the processor; first changes to a carrier that has one, if it must.
    [[nodiscard]] UMS_ALWAYS_INLINE processor* enter() noexcept { return enter_surely(on); }
    // Inside: leaves the processor, and the fiber runs on.
    UMS_ALWAYS_INLINE void stay() noexcept { on->leave(self->race); }

    // What the trace says, inside `p`: why the fiber leaves, or what it waits for if its wait
    // record does not say. A kept carrier goes to its loop first, so nothing runs next.
    UMS_ALWAYS_INLINE void record(const processor& p, trace_event why, const fiber* next) noexcept {
        if (p.trace != nullptr) [[unlikely]]
            trace_leave(*p.trace, why, *self, keeps ? nullptr : next);
    }
    UMS_ALWAYS_INLINE void record(const processor& p, trace_wait otherwise, const fiber* next,
                                  const fiber* joined = nullptr) noexcept {
        if (p.trace != nullptr) [[unlikely]]
            trace_park(*p.trace, *self, keeps ? nullptr : next, otherwise,
                       joined != nullptr ? joined->id.get() : 0);
    }

    // The action for after the switch.
    [[nodiscard]] UMS_ALWAYS_INLINE after_switch* then(after_switch::action* finish,
                                                       void* other = nullptr,
                                                       std::uintptr_t word = 0) noexcept {
        return on->then(finish, self, other, word);
    }

    // Inside. Continues `next`, or the loop if it is null. Returns on whichever carrier resumes the
    // fiber, outside.
    UMS_ALWAYS_INLINE void to(fiber* next, after_switch* after) noexcept {
        if constexpr (keeps) {
            keep::switch_to(on->whole(), *self, next, after);
        } else {
            to_and_stay_inside(next, after);
            stay();
        }
    }
    // The same for a fiber with work to do inside. Not for one that keeps its carrier. stay()
    // follows.
    UMS_ALWAYS_INLINE void to_and_stay_inside(fiber* next, after_switch* after) noexcept {
        static_assert(!keeps);
        const int kept_errno = os::read_errno(on->errno_at);
        on->running.set(next);
        arch::start_switch(self->shadow, next != nullptr ? next->shadow : on->loop_shadow);
        const arch::arrival a = arch::switch_context(
            self->context, next != nullptr ? next->context : on->loop, on, after);
        arch::finish_switch(self->shadow);
        on = static_cast<carrier_core*>(a.carrier);
        if (a.after != nullptr) [[unlikely]] {  // Not after a yield, which is the shortest way.
            const auto* h = static_cast<const after_switch*>(a.after);
            h->finish(*h, *on);
        }
        os::write_errno(on->errno_at, kept_errno);
    }
    // The same for a fiber whose carrier has no processor, from outside: for the loop.
    UMS_ALWAYS_INLINE void to_loop(after_switch* after) noexcept {
        if constexpr (keeps)
            keep::leave_and_return(on->whole(), *self, after);
        else
            to(nullptr, after);
    }
    // The same for a fiber that has ended.
    [[noreturn]] UMS_ALWAYS_INLINE void for_good(fiber* next, after_switch* after) noexcept {
        on->running.set(next);
        arch::start_last_switch(next != nullptr ? next->shadow : on->loop_shadow);
        arch::switch_for_good(self->context, next != nullptr ? next->context : on->loop, on, after);
    }

    carrier_core* on;
    fiber* const self;
};

// depart() of a fiber that takes more along than the usual one: it keeps its carrier, or the
// exception globals are put aside for the time in which another fiber may use this kernel thread's,
// and put back on whichever kernel thread it returns on.
template <class Leave>
[[gnu::noinline, gnu::cold]] auto depart_with_more(carrier_core* c, fiber* self,
                                                   Leave leave) noexcept {
    if (c->is_kept.get()) return leave(departure<true>{c, self});
    struct exceptions {
        arch::exception_state aside = this_carrier_core()->exceptions->take();
        ~exceptions() { this_carrier_core()->exceptions->put(aside); }
    } kept;
    return leave(departure<false>{c, self});
}

// Calls leave() with the departure of the calling fiber, and returns what that returns.
template <class Leave>
UMS_ALWAYS_INLINE auto depart(carrier_core* c, fiber* self, Leave leave) noexcept {
    if (c->exceptions->active()) [[unlikely]]
        return depart_with_more(c, self, leave);
    return leave(departure<false>{c, self});
}

}  // namespace ums::sched
