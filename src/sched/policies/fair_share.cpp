// SPDX-License-Identifier: MIT
#include "sched/policies/fair_share.hpp"

#include <algorithm>
#include <bit>

#include "sched/fiber/access.hpp"

namespace ums::sched {

static_assert(group_count == 64, "a bit for each");

// Tells a group from what another policy has noted, if a policy of the application's wraps both.
static constexpr std::uint32_t in_group = std::uint32_t{1} << 31;

// What time `t` counts for a fiber of that weight. At least something, so that fibers that run for
// less than a tick of the clock take turns.
static std::uint64_t weighed(os::nanoseconds t, unsigned weight) noexcept {
    return static_cast<std::uint64_t>(std::max<os::nanoseconds>(t, 1)) * most_weight / weight;
}

// Returns the group that `f` is to be in. A fiber that was in another group, or in none, brings
// neither credit nor debt along: it begins where the fiber that ran last there was. So does a group
// that had no ready fiber.
fair_share_policy::group& fair_share_policy::join(fiber& f) noexcept {
    const unsigned number = f.wanted.group.get();  // Read once: set_group() may change it any time.
    group& its = groups_[number];
    if (f.kept.place.get() == (in_group | number)) return its;
    f.kept.place.set(in_group | number);
    f.kept.used = its.floor;
    if (its.ready.empty()) its.used = std::max(its.used, floor_);
    return its;
}

// Call at the end of a stretch that the policy gave it. The group in which it began pays for it.
void fair_share_policy::charge(fiber& f, os::nanoseconds until) noexcept {
    if (f.kept.since == 0) return;
    const os::nanoseconds ran = until - f.kept.since;
    f.kept.since = 0;
    f.kept.used += weighed(ran, f.wanted.effective_weight());
    if (f.kept.place.get() < in_group) return;
    group& its = groups_[f.kept.place.get() - in_group];
    its.used += weighed(ran, its.weight);
}

void fair_share_policy::ready(fiber_ref f, unsigned processor) noexcept {
    fiber& it = *access::fiber_of(f);
    const os::nanoseconds now = now_();
    const os::lock_guard guard{lock_};
    if (processor != outside)
        charge(it, now);
    else
        // It is not known how much of that time it ran, and how much it spent in a call of the
        // kernel.
        it.kept.since = 0;
    group& its = join(it);
    if (its.ready.empty()) its.used = std::max(its.used, floor_);
    it.kept.used = std::max(it.kept.used, its.floor);
    its.ready.push(f, it.kept.used);
    in_use_ |= std::uint64_t{1} << (&its - groups_.data());
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
    charge(it, now);
    group& its = join(it);
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
    charge(*access::fiber_of(f), now);
}

bool fair_share_policy::set_group_weight(unsigned of, unsigned weight) noexcept {
    const os::lock_guard guard{lock_};
    groups_[of].weight = weight;
    return true;
}

}  // namespace ums::sched
