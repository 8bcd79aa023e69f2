// SPDX-License-Identifier: MIT
#include "sched/block/hand_off.hpp"

#include <sched.h>

#include "base/assert.hpp"
#include "os/no_stop.hpp"
#include "sched/block/carrier_pool.hpp"
#include "sched/block/keep.hpp"
#include "sched/block/stop.hpp"
#include "sched/run/cluster.hpp"
#include "sched/run/departure.hpp"
#include "sched/run/ready.hpp"

namespace ums::sched {

namespace {

constexpr int most_looks = 100;

// Requires: a claim on `blocked`, whose processor moves to `to`.
void trace_move(const carrier& blocked, const carrier& to) noexcept {
    trace_ring* const ring = blocked.proc.get()->trace;
    if (ring == nullptr) [[likely]]
        return;
    ring->write(trace_event::hand_off, blocked.running.get()->id.get(),
                static_cast<std::uint64_t>(blocked.tid.get()),
                static_cast<std::uint64_t>(to.tid.get()));
}

// The fiber has left the carrier, which has no processor.
void finish_rejoin(const after_switch& h, carrier_core& core) noexcept {
    carrier& c = core.whole();
    UMS_ASSERT(c.proc.get() == nullptr, "a carrier was given a processor while its fiber left it");
    trace_outside(trace_event::back, h.self->id.get(), static_cast<std::uint64_t>(c.tid.get()));
    c.pool.come_back(c);
    if (c.is_kept.get()) keep::wait_for_fiber(c);
    ready::at_home(*h.self);
    os::end_no_stop();  // Forbidden in rejoin(), on this kernel thread.
}

}  // namespace

// From here on the fiber is not stopped. Otherwise its stop and finish_rejoin() would both put it
// into a queue, and its carrier would be given a processor that its loop knows nothing of. A stop
// that came before, after enter() had failed, is over: then the carrier has a processor.
carrier_core* rejoin(carrier_core* c) noexcept {
    UMS_ASSERT(!c->ownership.is_inside(), "a fiber leaves its carrier from inside of a processor");
    os::begin_no_stop();
    fiber* self = c->running.get();
    UMS_ASSERT(self != nullptr, "no fiber runs on the carrier that one is to leave");
    stop::wait_if_released(c->whole());
    if (c->enter() != nullptr) {
        c->leave(self->race);
        os::end_no_stop();
        return c;
    }
    c->race.enter();
    const auto leave = [](auto leaving)
                           UMS_INLINED { leaving.to_loop(leaving.then(&finish_rejoin)); };
    if (c->is_kept.get()) [[unlikely]]
        leave(departure<true>{c, self});
    else
        leave(departure<false>{c, self});
    return this_carrier_core();
}

// Claims a carrier that has not switched since `seen`. A carrier that stays inside blocks there (in
// a policy's mutex, a page fault) and cannot be handed off: a detector that waited for it would be
// blind meanwhile. It does wait for a thief, which is done soon; without a bound, because a caller
// that gave up would forget a carrier that it has taken out of the list of those that want a spare.
bool hand_off::claim(carrier& blocked, std::uint64_t seen) noexcept {
    auto is_where_it_was = [&] {
        return blocked.running.get() != nullptr && blocked.activity() == seen &&
               !blocked.stopping.is_going_on.get() && blocked.turn.now() == turn_word::holds;
    };
    for (int looks = 0; looks < most_looks && is_where_it_was();) {
        // Looks before the claim, which interrupts every CPU of the process.
        if (blocked.ownership.is_inside()) {
            ++looks;
            base::spin_pause();
        } else if (blocked.ownership.try_claim()) {
            if (blocked.proc.get() != nullptr && is_where_it_was()) return true;
            blocked.ownership.unclaim();
            return false;
        } else {
            sched_yield();
        }
    }
    return false;
}

// The processor's fibers go with it, because they are in its queue. The claim, or enter(), has to
// publish them.
void hand_off::move(carrier& from, carrier& to) noexcept {
    UMS_ASSERT(from.proc.get() != nullptr,
               "a carrier gives away a processor that it does not hold");
    processor& p = *from.proc.get();
    UMS_ASSERT(to.proc.get() == nullptr, "a carrier was given a second processor");
    UMS_ASSERT(p.is_held_by(from), "a carrier gives away a processor that names another");
    UMS_ASSERT(&from.pool == &to.pool, "a processor leaves its cluster");
    from.proc.set(nullptr);
    to.proc.publish(&p);  // sync(carrier.proc)
    // This comes before occupy(), so that a thief that claims the carrier finds it named here.
    p.set_holder(&to);
    from.ownership.vacate();
    to.ownership.occupy();
}

// Requires: a claim.
bool hand_off::keeps_claim(carrier& blocked) noexcept {
    carrier_pool& pool = blocked.pool;
    if (pool.borrow_permit(blocked)) return true;
    carrier* stopped = pool.stopped_or_refuse(blocked);
    if (stopped != nullptr) pass_on(blocked, *stopped);
    blocked.ownership.unclaim();
    if (stopped != nullptr)
        pool.run(*stopped);
    else
        pool.look_again_at_refused();
    return false;
}

// Requires: a claim on `blocked`. `to` has a permit, and waits for a processor.
void hand_off::pass_on(carrier& blocked, carrier& to) noexcept {
    fiber& f = *blocked.running.get();
    trace_move(blocked, to);
    move(blocked, to);
    if (f.blocks.holds_permit()) return blocked.pool.come_back(to);
    blocked.pool.pass_permit_on(to, blocked);
}

hand_off::result hand_off::from(carrier& blocked, std::uint64_t seen, bool& was_marked,
                                int free_cpu) noexcept {
    if (!claim(blocked, seen)) return result::not_blocked;
    carrier_pool& pool = blocked.pool;
    fiber& f = *blocked.running.get();
    was_marked = f.blocks.holds_permit();
    if (!was_marked && !keeps_claim(blocked)) return result::refused;
    carrier* spare = was_marked ? keep::take_relief(blocked) : nullptr;
    if (spare != nullptr)
        pool.count_hand_off();
    else
        spare = pool.take_spare(&blocked, free_cpu);
    if (spare == nullptr) {
        pool.give_borrowed_permit(blocked);
        // The maker of the spare may wait for what a stopped fiber holds: the allocator's lock. As
        // in keeps_claim(), if the two miss each other, the second finds the first: this carrier is
        // on the list of those that want a spare.
        carrier* stopped = pool.take_stopped();
        if (stopped != nullptr) pass_on(blocked, *stopped);
        blocked.ownership.unclaim();
        if (stopped != nullptr) {
            pool.count_hand_off();
            pool.run(*stopped);
        }
        pool.replenish();
        return stopped != nullptr ? result::done : result::later;
    }
    UMS_ASSERT(spare->running.get() == nullptr, "a spare runs a fiber");
    trace_move(blocked, *spare);
    move(blocked, *spare);
    pool.go_away(blocked);
    blocked.ownership.unclaim();
    // Where processors have CPUs of their own, the new carrier goes there by itself. One that the
    // maker has just made may not have begun: then its id is 0.
    if (free_cpu >= 0 && !pool.home().pins() && spare->cpu.get() != free_cpu)
        spare->wake_place.begin(spare->tid.get(), free_cpu);
    pool.run(*spare);
    pool.replenish();
    return result::done;
}

bool hand_off::take_over(carrier& blocked, carrier& spare, std::uint64_t seen) noexcept {
    if (!claim(blocked, seen)) return false;
    carrier_pool& pool = blocked.pool;
    fiber& f = *blocked.running.get();
    const bool was_marked = f.blocks.holds_permit();
    if (!was_marked && !keeps_claim(blocked)) return false;
    UMS_ASSERT(spare.running.get() == nullptr, "a spare runs a fiber");
    trace_move(blocked, spare);
    move(blocked, spare);
    pool.go_away(blocked);
    blocked.ownership.unclaim();
    pool.count_hand_off();
    return true;
}

bool hand_off::exchange(carrier& blocked, carrier& back, std::uint64_t seen) noexcept {
    if (!claim(blocked, seen)) return false;
    pass_on(blocked, back);
    blocked.ownership.unclaim();
    blocked.pool.count_hand_off();
    return true;
}

}  // namespace ums::sched
