// SPDX-License-Identifier: MIT
#include "ums/this_fiber.hpp"

#include <sched.h>
#include <system_error>

#include "base/assert.hpp"
#include "os/no_stop.hpp"
#include "sched/fiber/access.hpp"
#include "sched/queue/depot.hpp"
#include "sched/run/cluster.hpp"
#include "sched/run/departure.hpp"
#include "sched/run/here.hpp"
#include "sched/run/park.hpp"
#include "sched/run/ready.hpp"
#include "ums/cluster.hpp"

namespace ums {

namespace {

using namespace sched;

// For a fiber that goes into a queue that others see only after its registers are saved.
void finish_yield(const after_switch& h, carrier_core& c) noexcept {
    processor& p = *c.proc.get();
    if (p.is_retiring()) return ready::at_home(*h.self);
    if (ready::at(p, *h.self, processor::place::back)) p.wake_help();
}

// To h.word, a processor, if that is not 0. Until it has come there the fiber is pinned to it.
void finish_migration(const after_switch& h, carrier_core& c) noexcept {
    auto& target = *static_cast<sched::cluster*>(h.other);
    h.self->pin(reinterpret_cast<processor*>(h.word));
    if (h.self->home_cluster.get() == &target) return ready::at_home(*h.self);
    h.self->home_cluster.publish(&target);  // For urgency::settle(), which may look from anywhere.
    h.self->kept.forget();
    // Counted there before it is counted out here, so that neither drain() misses it.
    target.spawned_outside.fetch_add(1, base::seq_cst);
    ready::at_home(*h.self);
    c.proc.get()->count_end();
}

wake_reason to_public(parkable::reason why) noexcept {
    return why == parkable::reason::wake       ? wake_reason::unparked
           : why == parkable::reason::deadline ? wake_reason::deadline_passed
                                               : wake_reason::stopped;
}

// yield() is the hottest function of the library. Two stores and a load take the ownership (the
// load tests for a thief, and for a processor that has left); one fiber leaves the ring and one
// enters it; the switch; and a store gives the ownership back. Returns whether the fiber stopped.
UMS_ALWAYS_INLINE bool yield_here() noexcept {
    carrier_core* c = this_carrier_core();
    if (c == nullptr) [[unlikely]] {
        sched_yield();
        return false;
    }
    return depart(c, c->running.get(), [](auto leaving) UMS_INLINED {
        processor* p = leaving.on->enter();
        if (p == nullptr) [[unlikely]] {
            static_cast<void>(rejoin(leaving.on));
            return true;
        }
        sched::fiber* next = p->ready.rotate(*leaving.self);
        // The ring, as the action, records the yield.
        if (next != nullptr) [[likely]] {
            leaving.to(next, leaving.keeps ? nullptr : p->trace);
            return true;
        }
        next = p->pick_for_yield(*leaving.self);
        if (next == nullptr && !p->is_retiring() && !p->home().is_paused()) {
            leaving.stay();
            return false;
        }
        leaving.record(*p, sched::trace_event::yield, next);
        leaving.to(next, leaving.then(&finish_yield));
        return true;
    });
}

}  // namespace

void this_fiber::yield() noexcept { static_cast<void>(yield_here()); }

bool this_fiber::try_yield() noexcept { return yield_here(); }

fiber_id this_fiber::get_id() noexcept { return ref().id(); }

std::string_view this_fiber::name() noexcept { return ref().name(); }

fiber_ref this_fiber::ref() noexcept { return access::ref(&this_parkable()); }

void this_fiber::park() noexcept { sched::park(park_kind::user); }

wake_reason this_fiber::park_until(deadline limit) noexcept {
    return to_public(sched::park(park_kind::user, os::to_nanoseconds(limit), nullptr));
}

wake_reason this_fiber::park(const std::stop_token& stop) noexcept {
    return to_public(sched::park(park_kind::user, os::never, &stop));
}

wake_reason this_fiber::park_until(deadline limit, const std::stop_token& stop) noexcept {
    return to_public(sched::park(park_kind::user, os::to_nanoseconds(limit), &stop));
}

void this_fiber::sleep_until(deadline limit) noexcept {
    const os::nanoseconds at = os::to_nanoseconds(limit);
    // Only its deadline wakes a sleeper.
    if (at > os::now()) sched::park(park_kind::internal, at, nullptr);
}

namespace {

// `there`: null: any of its processors.
void go_to(here at, sched::cluster* target, processor* there) noexcept {
    UMS_ASSERT(!target->is_left_behind(), "migrate() to a cluster that fork() has left behind");
    sched::fiber* const self = at.self;
    UMS_ASSERT(!at.on->is_kept.get() || self->home_cluster.get() == target,
               "migrate() was called inside ums::keep_carrier, and a kernel thread does not leave "
               "its cluster");
    // A marked region continues with a permit of the new cluster's: each pool counts its own.
    const std::uint32_t depth = self->home_cluster.get() != target ? self->blocks.depth.get() : 0;
    if (depth != 0) {
        self->blocks.depth.set(0);
        self->blocks.has_permit.set(false);
        self->home_cluster.get()->carriers.give_permit();
    }
    depart(at.on, at.self, [target, there](auto leaving) {
        processor* p = leaving.enter();
        sched::fiber* next = p->pick();
        leaving.record(*p, sched::trace_event::migrate, next);
        leaving.to(
            next, leaving.then(&finish_migration, target, reinterpret_cast<std::uintptr_t>(there)));
    });
    if (depth == 0) return;
    target->carriers.take_permit();
    self->blocks.has_permit.set(true);
    self->blocks.depth.set(depth);
}

here of_a_fiber() noexcept {
    const here at;
    UMS_ASSERT(at.self != nullptr, "migrate() was called by a plain thread");
    return at;
}

}  // namespace

void this_fiber::migrate(ums::cluster& to) noexcept {
    sched::cluster* const target = cluster_access::of(to);
    const here at = of_a_fiber();
    if (at.self->home_cluster.get() != target) go_to(at, target, nullptr);
}

void this_fiber::migrate(ums::cluster& to, unsigned index) {
    sched::cluster* const target = cluster_access::of(to);
    const here at = of_a_fiber();
    if (index >= target->active())
        throw std::system_error{std::make_error_code(std::errc::invalid_argument),
                                "ums: this_fiber::migrate: the cluster has no such processor"};
    processor& there = target->at(index);
    sched::fiber& self = *at.self;
    const bool stays_pinned = self.is_pinned.get();
    if (at.at() != &there)
        go_to(at, target, &there);
    else if (stays_pinned)
        self.pin(&there);
    if (stays_pinned) return;
    self.pin(nullptr);
    const os::no_stop policy_is_used_by_processors;
    if (policy* order = target->policy()) order->placed(access::ref(&self), index);
}

std::size_t this_fiber::stack_high_water_bytes() noexcept {
    const here at;
    return at.self != nullptr ? mem::high_water_bytes(*at.self) : 0;
}

}  // namespace ums
