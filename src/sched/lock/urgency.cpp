// SPDX-License-Identifier: MIT
#include "sched/lock/urgency.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "sched/fiber/access.hpp"
#include "sched/run/cluster.hpp"

namespace ums::sched {

int urgency::of(const parkable& who) noexcept {
    if (!who.is_fiber) return 0;
    const auto& f = static_cast<const fiber&>(who);
    // The fiber waits, so it does not migrate.
    const policy* const order = f.home_cluster.get()->policy();
    return order != nullptr && order->has_priorities() ? f.wanted.effective_priority()
                                                       : f.wanted.urgency_beside(0);
}

void urgency::begin(lender& d, parkable& who) noexcept {
    UMS_DEBUG_ASSERT(d.who == nullptr && d.to == nullptr, "a wait for a mutex begins twice");
    d.who = &who;
    if (who.is_fiber) static_cast<fiber&>(who).waits.lends = &d;
}

fiber* urgency::end(lender& d) noexcept {
    fiber* const to = d.to;
    take_back(d);
    if (d.who->is_fiber) static_cast<fiber*>(d.who)->waits.lends = nullptr;
    d.who = nullptr;
    return to;
}

void urgency::lend(lender& d, fiber& holder) noexcept {
    if (d.to == &holder) return;
    take_back(d);
    lender*& first = holder.wanted.lenders;
    d.to = &holder;
    if (first == nullptr) {
        first = d.next = d.previous = &d;
        return;
    }
    d.next = first;
    d.previous = first->previous;
    d.previous->next = first->previous = &d;
}

void urgency::take_back(lender& d) noexcept {
    if (d.to == nullptr) return;
    lender*& first = d.to->wanted.lenders;
    if (first == &d) first = d.next == &d ? nullptr : d.next;
    d.previous->next = d.next;
    d.next->previous = d.previous;
    d.to = nullptr;
}

void urgency::settle_lent(const lender& d) noexcept {
    // relaxed: as in settle().
    if (lent_by(d) > d.to->wanted.inherited.load(base::relaxed)) settle(d.to);
}

void urgency::settle_less(fiber* f) noexcept {
    if (f == nullptr) return;
    lender*& first = f->wanted.lenders;
    if (lender* d = first; d != nullptr) {
        // relaxed: as in settle().
        const std::uint32_t inherited = f->wanted.inherited.load(base::relaxed);
        do {
            if (lent_by(*d) == inherited) {
                first = d;
                return;
            }
            d = d->next;
        } while (d != first);
    }
    settle(f);
}

void urgency::settle(fiber* f) noexcept {
    for (unsigned step = 0; f != nullptr && step < longest; ++step) {
        std::uint32_t lent = 0;
        const lender* const first = f->wanted.lenders;
        if (const lender* d = first; d != nullptr) do {
                lent = std::max(lent, lent_by(*d));
                d = d->next;
            } while (d != first);
        const int before = f->wanted.effective_priority();
        // relaxed: changed only inside a section; the policy's lock orders what raised() does.
        if (f->wanted.inherited.load(base::relaxed) == lent) return;
        f->wanted.inherited.store(lent, base::relaxed);
        // acquire, by take(): sees the cluster that it migrated to.
        if (f->wanted.effective_priority() > before)
            if (policy* order = f->home_cluster.take()->policy()) order->raised(access::ref(f));
        const lender* const own = f->waits.lends;
        f = own != nullptr ? own->to : nullptr;
    }
}

}  // namespace ums::sched
