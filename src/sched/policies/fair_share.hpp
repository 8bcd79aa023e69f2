// SPDX-License-Identifier: MIT
#pragma once

// sched/policies/fair_share.hpp: running time by weight.
//
// The time that a fiber runs is added up, divided by its weight; and so is that of its group,
// divided by the group's weight. The group that has used least comes first, and in it the fiber
// that has used least. So among groups that always have something to run, each gets its weight's
// share, however many fibers it has; and so do the fibers within one group.
//
// Time off is not saved up: a fiber or a group that comes back starts from where the running one
// is, as does a fiber that changes its group. A yield gives way only if another has used no more.
//
// The time counts from when the policy gives a fiber to a processor until the fiber waits, yields,
// or its time slice is over. Two things do not count: what a dispatched fiber does before its first
// wait, and what a fiber does after a call that blocked in the kernel while its processor moved on
// without it.
//
// Bound: while the others run for at most t without giving way, a ready fiber whose weight is the
// nth part of all (of its group's, times the group's of all) waits for n * t, plus t for each of
// the others.
// Cost:  one lock for all processors and two looks at the clock for each switch, on average O(log
//        n); and a look at each group in use.

#include <array>

#include "os/clock.hpp"
#include "os/lock.hpp"
#include "sched/fiber/fiber.hpp"
#include "ums/policy.hpp"

namespace ums::sched {

class fair_share_policy final : public policy {
public:
    using clock = os::nanoseconds (*)() noexcept;

    // `now` is for tests in simulated time.
    explicit fair_share_policy(clock now = &os::now) noexcept : now_{now} {}

    void attach(unsigned) override {}
    void detach(unsigned) override {}
    void ready(fiber_ref f, unsigned processor) noexcept override;
    fiber_ref next(unsigned processor) noexcept override;
    fiber_ref instead_of(fiber_ref f, unsigned processor) noexcept override;
    void left(fiber_ref f, unsigned processor) noexcept override;
    bool empty(unsigned) const noexcept override { return size_.get() == 0; }
    bool set_group_weight(unsigned group, unsigned weight) noexcept override;

private:
    struct group {
        ordered_fiber_queue ready;  // Ordered by the time used.
        std::uint64_t used = 0;     // Counted like a fiber's.
        // What the fiber that ran last had used: no ready fiber has used less.
        std::uint64_t floor = 0;
        unsigned weight = usual_weight;
    };

    // All of these require lock_.
    [[nodiscard]] group& join(fiber& f) noexcept;
    void charge(fiber& f, os::nanoseconds until) noexcept;
    [[nodiscard]] group* first() noexcept;
    [[nodiscard]] fiber_ref take(group& from, os::nanoseconds now) noexcept;

    const clock now_;
    os::lock lock_{os::lock_rank::policy};
    // Guarded by lock_:
    std::array<group, group_count> groups_;
    std::uint64_t in_use_ = 0;       // A bit for each group with ready fibers.
    std::uint64_t floor_ = 0;        // Like a group's floor, but among the groups.
    base::owned<std::size_t> size_;  // Others read it as a hint.
};

}  // namespace ums::sched
