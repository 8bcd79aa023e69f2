// SPDX-License-Identifier: MIT
#pragma once

// sched/urgency.hpp: priority inheritance: a fiber that holds what a more urgent one waits for
// becomes as urgent.
//
// The fiber counts the locks on whose account it was raised, and keeps the highest priority that
// any of them lent, until the count is zero: it may stay more urgent than it must while it still
// holds another of them. A lock says by a flag of its own whether it has raised its holder, so each
// counts once.
//
// Not passed on: if the holder waits for another lock itself, the holder of that is not raised.

#include <sched.h>

#include "base/assert.hpp"
#include "sched/access.hpp"
#include "sched/cluster.hpp"

namespace ums::sched {

class urgency {
public:
    // Whether any fiber of this process may have a priority that counts. Most programs have none.
    [[nodiscard]] static bool counts() noexcept {
        // relaxed: it is set before such a cluster has a fiber.
        return clusters_.load(base::relaxed) != 0;
    }
    // Called by a cluster whose policy has priorities, when it is made, and when it is destroyed.
    static void add_cluster() noexcept { clusters_.fetch_add(1, base::relaxed); }
    static void remove_cluster() noexcept { clusters_.fetch_sub(1, base::relaxed); }

    // Of one that waits. The usual one if it is a plain thread, or a fiber whose own cluster knows
    // no priorities: what such a fiber asks for must not count elsewhere.
    [[nodiscard]] static int of(const parkable& who) noexcept {
        if (!who.is_fiber) return 0;
        const auto& f = static_cast<const fiber&>(who);
        // It waits, so it does not migrate.
        const policy* const order = f.home_cluster.get()->policy();
        return order != nullptr && order->has_priorities() ? f.wanted.effective_priority() : 0;
    }

    // `holder` holds a lock that somebody of this priority waits for, and cannot release it
    // meanwhile. `is_first`: the lock has not raised it before.
    static void raise(fiber& holder, int priority, bool is_first) noexcept {
        auto& word = holder.wanted.inherited;
        const auto lent = static_cast<std::uint32_t>(priority + lent_zero);
        std::uint32_t seen = word.load(base::relaxed), next;
        do {
            next = (is_first ? seen + one_lock : seen) & ~lent_mask;
            next |= std::max(seen & lent_mask, lent);
            // relaxed: the policy's lock orders what raised() does.
        } while (!word.compare_exchange(seen, next, base::relaxed, base::relaxed));
        if ((seen & lent_mask) >= lent) return;
        // The holder may migrate, and the cluster that it leaves may be drained and deleted, while
        // this looks at it: so that cluster waits, see wait_for_raisers().
        // sync(raise): if the cluster did not wait for this one, this comes after, and sees where
        // the holder went.
        raisers_.fetch_add(1, base::acquire);
        // acquire, by take(): sees the cluster that it migrated to.
        if (policy* order = holder.home_cluster.take()->policy()) order->raised(access::ref(&holder));
        raisers_.fetch_sub(1, base::release);  // sync(raise): all accesses to the cluster are over.
    }
    // By a cluster that is drained, before it goes: no raise() touches it after this. Short: a
    // raise() is under the lock of a mutex's list, so it is not stopped, nor does it wait for
    // anything but the policy's lock.
    static void wait_for_raisers() noexcept {
        // sync(raise): both sides read and change one word, so that one comes after the other. A
        // plain load would not do: a raise() that it missed could still read the old home. release:
        // publishes where the fibers went. acquire: comes after the raises.
        while (raisers_.fetch_add(0, base::acq_rel) != 0) sched_yield();
    }
    // By the holder: it releases a lock that has raised it.
    static void end(fiber& holder) noexcept {
        auto& word = holder.wanted.inherited;
        std::uint32_t seen = word.load(base::relaxed), next;
        do {
            UMS_DEBUG_ASSERT(seen >= one_lock, "a lock ends a raise that there was not");
            next = seen - one_lock;
            if (next < one_lock) next = 0;
        } while (!word.compare_exchange(seen, next, base::relaxed, base::relaxed));
    }

private:
    static constexpr std::uint32_t lent_mask = 0xff, one_lock = 0x100;
    static constexpr int lent_zero = 16;

    static inline constinit base::atomic<unsigned> clusters_;
    // How many look at a holder's cluster, in all of the process.
    static inline constinit base::atomic<unsigned> raisers_;
};

}  // namespace ums::sched
