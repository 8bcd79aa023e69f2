// SPDX-License-Identifier: MIT
#include "sched/policies/global_fifo.hpp"

#include <algorithm>

namespace ums::sched {

void global_fifo_policy::ready(fiber_ref f, unsigned) noexcept {
    const os::lock_guard guard{lock_};
    queue_.push_back(f);
    size_.publish(queue_.size());
}

fiber_ref global_fifo_policy::take(place& from) noexcept {
    if (from.size.get() == 0) return {};
    const os::lock_guard guard{from.lock};
    const fiber_ref f = from.batch.pop_front();
    from.size.set(from.batch.size());
    return f;
}

fiber_ref global_fifo_policy::next(unsigned processor) noexcept {
    place& own = places_.at(processor);
    if (const fiber_ref f = take(own)) return f;
    if (size_.get() == 0) return {};

    // Until they are in the batch, they are in no queue that empty() looks at.
    own.is_taking.set(true);
    fiber_queue taken;
    {
        const os::lock_guard guard{lock_};
        const std::size_t share = queue_.size() / std::max(places_.active(), 1u);
        for (std::size_t n = std::clamp<std::size_t>(share, 1, most_taken); n != 0; --n) {
            const fiber_ref f = queue_.pop_front();
            if (!f) break;
            taken.push_back(f);
        }
        // release: a thread that sees that the queue is empty sees that this processor is taking.
        size_.publish(queue_.size());
    }
    const fiber_ref first = taken.pop_front();
    if (!taken.empty()) {
        const os::lock_guard guard{own.lock};
        while (const fiber_ref f = taken.pop_front()) own.batch.push_back(f);
        own.size.set(own.batch.size());
    }
    own.is_taking.publish(false);  // release: a thread that sees this sees the batch.
    return first;
}

fiber_ref global_fifo_policy::steal(unsigned, unsigned victim) noexcept {
    return victim < places_.made() ? take(places_.at(victim)) : fiber_ref{};
}

// These fibers are older than all queued ones.
void global_fifo_policy::detach(unsigned processor) {
    places_.detach(processor);
    fiber_queue newest_first;
    while (const fiber_ref f = take(places_.at(processor))) newest_first.push_front(f);
    const os::lock_guard guard{lock_};
    while (const fiber_ref f = newest_first.pop_front()) queue_.push_front(f);
    size_.publish(queue_.size());
}

bool global_fifo_policy::empty(unsigned processor) const noexcept {
    if (size_.take() != 0) return false;  // acquire: see next().
    const unsigned n = places_.made();
    // The caller's own comes first, because it usually has something.
    for (unsigned i = 0; i < n; ++i) {
        const place& at = places_.at((processor + i) % n);
        // In this order, and with acquire: fibers that are no longer on their way are in the batch.
        if (at.is_taking.take() || at.size.get() != 0) return false;
    }
    return true;
}

}  // namespace ums::sched
