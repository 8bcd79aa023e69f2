// SPDX-License-Identifier: MIT
#include "sched/hand_off.hpp"

#include <sched.h>

#include "os/futex.hpp"
#include "sched/carrier_pool.hpp"
#include "sched/cluster.hpp"
#include "sched/habit.hpp"
#include "sched/switch.hpp"

namespace ums::sched {

namespace {

// The fiber has left the carrier, which has no processor.
void finish_rejoin(const handover& h, carrier& c) noexcept {
    c.pool.come_back(c);
    h.self->home_cluster.get()->make_ready_from_outside(*h.self);
}

}  // namespace

carrier* rejoin(carrier* c) noexcept {
    fiber* self = c->running.get();
    c->race.enter();
    switch_to(c, self, nullptr, c->leave_behind(&finish_rejoin, self));
    return this_carrier();
}

// A claim on a carrier that has not switched since `seen`. While it is inside, or a thief is, the claim is tried again:
// both are short, and a blocked carrier that was given up on would keep its processor.
bool hand_off::claim(carrier& blocked, std::uint64_t seen) noexcept {
    auto is_where_it_was = [&] {
        return blocked.running.get() != nullptr && blocked.activity() == seen &&
               !blocked.is_stopping.get();
    };
    while (is_where_it_was()) {
        if (blocked.own.try_claim()) {
            if (blocked.proc.get() != nullptr && is_where_it_was()) return true;
            blocked.own.unclaim();
            return false;
        }
        sched_yield();
    }
    return false;
}

// The processor's fibers go with it: they are in its queue. Publishing them is the claim's, or enter()'s, business.
void hand_off::move(carrier& from, carrier& to) noexcept {
    processor& p = *from.proc.get();
    from.proc.set(nullptr);
    to.proc.set(&p);
    // sync(holder): a thief sees the carrier. Before occupy(): one that claims it finds it named here.
    p.holder_.store(&to, base::release);
    from.own.vacate();
    to.own.occupy();
}

// Under a claim.
bool hand_off::keeps_claim(carrier& blocked) noexcept {
    carrier_pool& pool = blocked.pool;
    if (pool.borrow_permit(blocked)) return true;
    carrier* stopped = pool.stopped_or_refuse(blocked);
    if (stopped != nullptr) pass_on(blocked, *stopped);
    blocked.own.unclaim();
    if (stopped != nullptr)
        pool.run(*stopped);
    else
        pool.look_again_at_refused();
    return false;
}

// Under a claim on `blocked`. `to` has a permit, and waits for a processor.
void hand_off::pass_on(carrier& blocked, carrier& to) noexcept {
    fiber& f = *blocked.running.get();
    move(blocked, to);
    if (f.blocks.holds_permit()) return blocked.pool.come_back(to);
    habit::found(f);
    blocked.pool.pass_permit_on(to, blocked);
}

hand_off::result hand_off::from(carrier& blocked, std::uint64_t seen, bool& was_marked) noexcept {
    if (!claim(blocked, seen)) return result::not_blocked;
    carrier_pool& pool = blocked.pool;
    fiber& f = *blocked.running.get();
    was_marked = f.blocks.holds_permit();
    if (!was_marked && !keeps_claim(blocked)) return result::refused;
    carrier* spare = pool.take_spare(&blocked);
    if (spare == nullptr) {
        pool.give_borrowed_permit(blocked);
        // Who makes the spare may wait for what a stopped fiber holds: the allocator's lock. As in keeps_claim(), of the
        // two that miss each other the second finds the first: this one is on the list of those that want a spare.
        carrier* stopped = pool.take_stopped();
        if (stopped != nullptr) pass_on(blocked, *stopped);
        blocked.own.unclaim();
        if (stopped == nullptr) return result::later;
        pool.count_hand_off();
        pool.run(*stopped);
        return result::done;
    }
    move(blocked, *spare);
    if (!was_marked) habit::found(f);
    pool.go_away(blocked);
    blocked.own.unclaim();
    pool.run(*spare);
    return result::done;
}

bool hand_off::take_over(carrier& blocked, carrier& spare, std::uint64_t seen) noexcept {
    if (!claim(blocked, seen)) return false;
    carrier_pool& pool = blocked.pool;
    fiber& f = *blocked.running.get();
    const bool was_marked = f.blocks.holds_permit();
    if (!was_marked && !keeps_claim(blocked)) return false;
    move(blocked, spare);
    if (!was_marked) habit::found(f);
    pool.go_away(blocked);
    blocked.own.unclaim();
    pool.count_hand_off();
    return true;
}

bool hand_off::exchange(carrier& blocked, carrier& back, std::uint64_t seen) noexcept {
    if (!claim(blocked, seen)) return false;
    pass_on(blocked, back);
    blocked.own.unclaim();
    blocked.pool.count_hand_off();
    return true;
}

}  // namespace ums::sched
