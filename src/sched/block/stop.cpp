// SPDX-License-Identifier: MIT
#include "sched/block/stop.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <pthread.h>
#include <ucontext.h>
#include <utility>

#include "arch/context.hpp"
#include "base/assert.hpp"
#include "os/signal/code_map.hpp"
#include "sched/block/carrier_pool.hpp"
#include "sched/block/hand_off.hpp"
#include "sched/run/carrier.hpp"
#include "sched/run/cluster.hpp"
#include "sched/run/ready.hpp"

namespace ums::sched {

namespace {

// Code in which a stop is put off. Learnt before any carrier runs.
os::code_map better_later;

// How long each deferral takes.
constexpr os::nanoseconds deferral = 100'000;

std::uintptr_t instruction(const void* context) noexcept {
    return static_cast<std::uintptr_t>(
        static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
}

// Runs on the loop's stack of the carrier that reached the place of a stopped fiber, inside its
// processor; the relay is free again. Gives the processor to the carrier that waits there, or
// keeps it if that one was released.
UMS_ALWAYS_INLINE void finish_relay(const after_switch& h, carrier_core& by) noexcept {
    auto& target = *static_cast<carrier*>(h.other);
    UMS_ASSERT(by.ownership.is_inside(), "a relay outside of a processor");
    UMS_ASSERT(&target != &by, "a fiber that was stopped runs where it comes to its place");
    for (turn_word::state seen = target.turn.now(); seen != turn_word::given;) {
        const bool is_released = seen == turn_word::runs_on;
        if (!target.turn.change(seen, is_released ? turn_word::holds : turn_word::given)) continue;
        if (is_released) return;
        break;
    }
    hand_off::move(by.whole(), target);
    by.leave(by.race);
    target.turn.set(turn_word::holds);
    target.turn.wake();
}

// The context of a stopped fiber leads here. No instrumented frame may be entered here in one TSan
// context and left in another.
UMS_UNINSTRUMENTED void cross(void* by_, void* after_, void* target) noexcept {
    auto& by = *static_cast<carrier*>(by_);
    if (const auto* left = static_cast<const after_switch*>(after_)) left->finish(*left, by);
    by.running.set(nullptr);
    arch::start_last_switch(by.loop_shadow);
    arch::context abandoned;
    arch::switch_context(abandoned, by.loop, &by, by.then(&finish_relay, nullptr, target));
    __builtin_unreachable();
}

// Waits until another thread gives this carrier a processor, or releases it. Returns what ended the
// wait.
turn_word::state wait_for_turn(carrier& c) noexcept {
    c.pool.begin_waiting(c);
    turn_word::state seen;
    while ((seen = c.turn.now()) == turn_word::stopped || seen == turn_word::given)
        c.turn.wait_while(seen);
    c.pool.end_waiting(c);
    return seen;
}

// The carrier has no processor. Any of its cluster's will do, except for a pinned fiber.
void stop_without_processor(carrier& c, fiber& f) noexcept {
    UMS_ASSERT(c.proc.get() == nullptr,
               "a fiber is stopped as one that has no processor, and has one");
    c.pool.count_stop(false);
    trace_outside(trace_event::back, f.id.get(), static_cast<std::uint64_t>(c.tid.get()));
    if (f.is_pinned.get())
        // This goes into an inbox, so no policy is asked.
        return ready::at_home(f);
    if (c.pool.take_or_stop(c))
        c.turn.set(turn_word::holds);  // The word is its own, because it is in no list.
    else
        c.pool.home().wake_for_work();
}

// Makes the fiber ready and waits until another thread has given this carrier a processor, or
// released it. Returns when to look at it again; 0: no need to.
os::nanoseconds stop_here(carrier& c, fiber& f) noexcept {
    // enter() waits for a thread that holds a claim on the carrier, and no thread gets one from now
    // on, because it looks at is_stopping (hand_off::claim()). So only this thread may change the
    // processor, and whether a permit is borrowed.
    if (c.enter() != nullptr) c.leave(f.race);
    carrier* spare = nullptr;
    const bool preempted = c.proc.get() != nullptr;
    // A marked region has just ended, and given its permit back: the fiber is about to ask for a
    // processor itself.
    if (!preempted && !c.has_borrowed) return deferral;
    if (preempted) {
        if (!c.pool.borrow_permit(c)) return deferral;
        spare = c.pool.take_ready_spare();
        if (spare == nullptr) {
            c.pool.give_borrowed_permit(c);
            return deferral;
        }
    }
    arch::make_context(f.context, c.stopping.interrupt.stack(), &cross, &c);
    c.turn.set(turn_word::stopped);
    if (preempted) {
        UMS_ASSERT(spare->brings == nullptr, "a spare brings another fiber");
        c.pool.count_stop(true);
        // The spare puts the fiber into its place in the order: at the back, as after a yield.
        spare->brings = &f;
        if (trace_ring* const trace = c.enter()->trace; trace != nullptr)
            trace->write(trace_event::stop, f.id.get());
        hand_off::give_up(c, *spare);
    } else {
        stop_without_processor(c, f);
    }
    // It was released, and runs on.
    if (wait_for_turn(c) == turn_word::runs_on || c.proc.get() == nullptr) return stop::patience;
    UMS_ASSERT(c.turn.now() == turn_word::holds, "a stopped fiber goes on out of turn");
    UMS_ASSERT(c.running.get() == &f, "another fiber runs on the carrier of one that was stopped");
    c.follow_processor();
    c.pool.come_back(c);
    return 0;
}

// Requires: `no_stops` is raised, so that a signal that comes meanwhile stops nothing. As
// stop_here().
os::nanoseconds stop_once(carrier& c, fiber& f) noexcept {
    c.stopping.is_going_on.set(true);
    const os::nanoseconds again = stop_here(c, f);
    c.stopping.is_going_on.set(false);
    // The carrier is of interest again, and a detector that found none meanwhile may have gone to
    // sleep.
    detection::runs();
    return again;
}

bool is_due(carrier& c, const fiber& f) noexcept {
    // It was released: its place in the queue is there.
    if (c.turn.now() != turn_word::holds) return false;
    const processor* p = c.proc.get();
    if (p == nullptr) return f.blocks.depth.get() == 0;  // The end of a marked region asks for one.
    const bool is_paused = c.pool.home().is_paused();
    if (c.pool.time_slice == 0 && !is_paused) return false;  // A late signal.
    return p->activity() == c.stopping.ends_time_slice_of.get() && (is_paused || p->is_wanted());
}

// Counts a stop that is due in the C library, the loader or the C++ runtime, and says whether it
// may come later. A coarse clock puts it off by a whole tick, which counts ten times.
bool may_put_off(carrier& c) noexcept {
    c.stopping.deferrals += c.stopping.interrupt.has_precise() ? 1 : 10;
    return c.stopping.deferrals < stop::most_deferrals;
}

}  // namespace

bool stop::end_time_slice(processor& p, std::uint64_t seen) noexcept {
    carrier* c = p.holder();
    if (c == nullptr || c->ownership.is_inside() || !c->ownership.try_claim()) return false;
    const fiber* const f = c->running.get();
    const bool holds = c->proc.get() == &p && f != nullptr && !c->stopping.is_going_on.get() &&
                       p.activity() == seen;
    const bool may_move = holds && f->blocks.uninterruptible.get() == 0;
    if (holds) {
        c->stopping.ends_time_slice_of.set(seen);
        c->stopping.interrupt.arm(c->tid.get(), os::user_interrupt::shortest);
    }
    c->ownership.unclaim();
    return may_move;
}

void stop::wait_if_released(carrier& c) noexcept {
    turn_word::state seen = turn_word::runs_on;
    if (c.turn.now() != seen) return;
    c.stopping.is_going_on.set(true);
    // If this fails, a processor has just reached the fiber's place, which is then gone.
    if (c.turn.change(seen, turn_word::waits)) {
        for (turn_word::state now; (now = c.turn.now()) != turn_word::holds;)
            c.turn.wait_while(now);
        c.pool.come_back(c);
    }
    c.stopping.is_going_on.set(false);
    detection::runs();
}

void stop::on_interrupt(const siginfo_t&, void* context) noexcept {
    const int kept_errno = errno;
    carrier* c = this_carrier();
    if (c == nullptr) return;
    fiber* f = c->running.get();
    os::nanoseconds again = 0;
    if (f != nullptr && is_due(*c, *f)) {
        // Another fiber's, or another slice: what was put off then is over.
        if (std::exchange(c->stopping.deferred_at, c->activity()) != c->activity())
            c->stopping.deferrals = 0;
        if (f->blocks.uninterruptible.get() != 0) {
            f->blocks.stop_wanted.set(true);
        } else if (c->ownership.is_inside() || c->no_stops.get() != 0) {
            // It finds out by itself, or is out again soon.
            again = deferral;
        } else if (better_later.has(instruction(context)) &&
                   (may_put_off(*c) || c->pool.home().is_paused())) {
            again = deferral;
        } else {
            c->stopping.deferrals = 0;
            c->no_stops.add(1);
            again = stop_once(*c, *f);
            c->no_stops.add(~std::uint32_t{0});
        }
    }
    if (again != 0) c->stopping.interrupt.again(again);
    errno = kept_errno;
}

// Not a yield: the caller may be a replacement of malloc, and whoever called that need not expect
// another kernel thread. Nor the signal alone: it would come after a moment, in the next section of
// a loop of them.
void stop::make_up(carrier& c, fiber& f) noexcept {
    const int kept_errno = errno;
    os::nanoseconds again = deferral;
    // Otherwise the section is one of a policy, for example, and the fiber itself is not there.
    if (!c.ownership.is_inside() && c.no_stops.get() == 0) {
        // The fiber has waited inside the section, and this is another carrier.
        if (!c.stopping.interrupt.is_open()) return get_processor(c);
        c.no_stops.add(1);
        base::compiler_fence();
        again = 0;
        if (is_due(c, f)) {
            // As in the handler, and for its reason.
            const sigset_t others = os::held_back();
            sigset_t before;
            pthread_sigmask(SIG_BLOCK, &others, &before);
            again = stop_once(c, f);
            pthread_sigmask(SIG_SETMASK, &before, nullptr);
        }
        base::compiler_fence();
        c.no_stops.add(~std::uint32_t{0});
    }
    if (again != 0) c.stopping.interrupt.again(again);
    errno = kept_errno;
}

void stop::learn_where_to_wait() {
    better_later.begin_learning();
    dl_iterate_phdr(
        [](dl_phdr_info* object, std::size_t, void*) {
            if (os::is_runtime_library(object->dlpi_name)) better_later.add(*object);
            return 0;
        },
        nullptr);
    better_later.end_learning(true);
}

}  // namespace ums::sched
