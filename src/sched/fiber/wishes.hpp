// SPDX-License-Identifier: MIT
#pragma once

// sched/fiber/wishes.hpp: what a program asks of a fiber's policy, and what a policy notes about
// the fiber.
//
// A fiber for which the program asked for nothing has zero everywhere, so a spawn stores only
// zeros.

#include <cstdint>

#include "base/atomic.hpp"
#include "os/clock.hpp"
#include "ums/policy.hpp"

namespace ums::sched {

struct lender;

// Any thread may write them; a policy reads them when the fiber becomes ready.
struct wishes {
    static constexpr int least = least_priority, most = most_priority;

    base::owned<os::nanoseconds> deadline;  // 0: none.
    base::owned<std::uint32_t> weight;      // 0: usual_weight.
    base::owned<std::int8_t> priority;
    base::owned<std::uint8_t> group;

    // The priority of the most urgent waiter for a mutex that the fiber holds, plus lent_zero; 0:
    // there is none. See sched/lock/urgency.hpp, whose lock guards this and the next one. Other
    // threads read this one.
    static constexpr int lent_zero = 16;
    base::atomic<std::uint32_t> inherited;
    lender* lenders = nullptr;  // Those that wait for a mutex it holds.

    // Asks for what `caller` does, and for what others lend it now, for a part of its work.
    void follow(const wishes& caller) noexcept {
        deadline.set(caller.deadline.get());
        weight.set(caller.weight.get());
        group.set(caller.group.get());
        priority.set(static_cast<std::int8_t>(caller.effective_priority()));
    }

    void set_deadline(ums::deadline when) noexcept {
        // A deadline at or before the clock's zero is as overdue as one right after it.
        const os::nanoseconds at = os::to_nanoseconds(when);
        deadline.set(at == os::never ? 0 : at > 0 ? at : 1);
    }

    [[nodiscard]] int effective_priority() const noexcept { return urgency_beside(priority.get()); }
    // Returns what it inherits, or `own` if that is higher.
    [[nodiscard]] int urgency_beside(int own) const noexcept {
        // relaxed: policy::raised() moves a fiber that is raised while it is ready.
        const std::uint32_t lent = inherited.load(base::relaxed);
        const int inherits = static_cast<int>(lent) - lent_zero;
        return lent == 0 || inherits < own ? own : inherits;
    }
    [[nodiscard]] unsigned effective_weight() const noexcept {
        const std::uint32_t own = weight.get();
        return own == 0 ? usual_weight : own;
    }
};

// Guarded by the policy that has the fiber, or that gave it to a processor. A policy that the fiber
// has left may still look at `place`, in raised().
struct policy_note {
    std::uint64_t used = 0;  // fair_share: the time that it ran, divided by its weight.
    // fair_share: since when it runs; 0: it does not run, or the policy did not start it.
    os::nanoseconds since = 0;
    // local_*: its processor, plus 1. priority: its level, plus 1. fair_share: its group, marked.
    base::owned<std::uint32_t> place;

    // It leaves for another cluster, whose policy knows nothing about it.
    void forget() noexcept {
        used = 0;
        since = 0;
        place.set(0);
    }
};

}  // namespace ums::sched
