// SPDX-License-Identifier: MIT
#include "sched/policies/fair_share.hpp"

#include <algorithm>
#include <bit>

#include "sched/access.hpp"

namespace ums::sched {

static_assert(group_count == 64, "a bit for each");

// What time `t` counts for a fiber of that weight. At least something, so that fibers that run for
// less than a tick of the clock take turns.
static std::uint64_t weighed(os::nanoseconds t, unsigned weight) noexcept {
    return static_cast<std::uint64_t>(std::max<os::nanoseconds>(t, 1)) * most_weight / weight;
}

// Call at the end of a stretch that the policy gave it. `its` is its group, which set_group() may
// change at any time, so each caller reads it once.
void fair_share_policy::charge(fiber& f, group& its, os::nanoseconds until) noexcept {
    if (f.kept.since == 0) return;
    const os::nanoseconds ran = until - f.kept.since;
    f.kept.since = 0;
    f.kept.used += weighed(ran, f.wanted.effective_weight());
    its.used += weighed(ran, its.weight);
}

void fair_share_policy::ready(fiber_ref f, unsigned processor) noexcept {
    fiber& it = *access::fiber_of(f);
    const os::nanoseconds now = now_();
    const os::lock_guard guard{lock_};
    const unsigned number = it.wanted.group.get();  // Read once: see charge().
    group& its = groups_[number];
    if (processor != outside)
        charge(it, its, now);
    else
        // It is not known how much of that time it ran, and how much it spent in a call of the
        // kernel.
        it.kept.since = 0;
    if (its.ready.empty()) its.used = std::max(its.used, floor_);
    it.kept.used = std::max(it.kept.used, its.floor);
    its.ready.push(f, it.kept.used);
    in_use_ |= std::uint64_t{1} << number;
    size_.add(1);
}

// The group whose turn it is, or null.
fair_share_policy::group* fair_share_policy::first() noexcept {
    group* least = nullptr;
    for (std::uint64_t left = in_use_; left != 0; left &= left - 1) {
        group& one = groups_[static_cast<unsigned>(std::countr_zero(left))];
        if (least == nullptr || one.used < least->used) least = &one;
    }
    return least;
}

fiber_ref fair_share_policy::take(group& from, os::nanoseconds now) noexcept {
    floor_ = std::max(floor_, from.used);
    from.floor = std::max(from.floor, from.ready.front_key());
    const fiber_ref f = from.ready.pop_front();
    if (from.ready.empty()) in_use_ &= ~(std::uint64_t{1} << (&from - groups_.data()));
    access::fiber_of(f)->kept.since = std::max<os::nanoseconds>(now, 1);
    size_.set(size_.get() - 1);
    return f;
}

fiber_ref fair_share_policy::next(unsigned) noexcept {
    if (size_.get() == 0) return {};
    const os::nanoseconds now = now_();
    const os::lock_guard guard{lock_};
    group* const from = first();
    return from != nullptr ? take(*from, now) : fiber_ref{};
}

fiber_ref fair_share_policy::instead_of(fiber_ref f, unsigned) noexcept {
    fiber& it = *access::fiber_of(f);
    const os::nanoseconds now = now_();
    const os::lock_guard guard{lock_};
    group& its = groups_[it.wanted.group.get()];  // Read once: see charge().
    charge(it, its, now);
    group* const from = first();
    // If both have used as much, give way, so that equals take turns.
    const bool goes_on = from == nullptr || (from == &its ? from->ready.front_key() > it.kept.used
                                                          : from->used > its.used);
    if (!goes_on) return take(*from, now);
    // No ready group has used less, so one that comes back is not ahead of the others.
    floor_ = std::max(floor_, its.used);
    its.floor = std::max(its.floor, it.kept.used);
    it.kept.since = std::max<os::nanoseconds>(now, 1);
    return {};
}

void fair_share_policy::left(fiber_ref f, unsigned) noexcept {
    const os::nanoseconds now = now_();
    const os::lock_guard guard{lock_};
    fiber& it = *access::fiber_of(f);
    charge(it, groups_[it.wanted.group.get()], now);
}

bool fair_share_policy::set_group_weight(unsigned of, unsigned weight) noexcept {
    const os::lock_guard guard{lock_};
    groups_[of].weight = weight;
    return true;
}

}  // namespace ums::sched
