// SPDX-License-Identifier: MIT
#include "sched/queue/timer_queue.hpp"

#include "base/assert.hpp"
#include "sched/run/wake.hpp"

namespace ums::sched {

void timer_queue::add(fiber_timer& t) noexcept {
    os::lock_guard guard{lock_};
    UMS_ASSERT(!t.is_queued() && t.who != nullptr, "a deadline is queued twice, or is nobody's");
    heap_.add(t);
    next_.set(heap_.next());
}

bool timer_queue::cancel(fiber_timer& t) noexcept {
    os::lock_guard guard{lock_};
    if (!t.is_queued()) return false;
    heap_.remove(t);
    next_.set(heap_.next());
    return true;
}

fiber* timer_queue::fire(os::nanoseconds now, unsigned most) noexcept {
    os::lock_guard guard{lock_};
    fiber* first = nullptr;
    fiber* last = nullptr;
    while (most-- != 0) {
        timers::timer* t = heap_.pop_expired(now);
        if (t == nullptr) break;
        fiber* f = static_cast<fiber_timer*>(t)->who;
        UMS_ASSERT(!t->is_queued(), "a deadline has passed, and is still queued");
        if (!claim_for(*f, parkable::reason::deadline)) continue;
        f->link.set(nullptr);
        if (last == nullptr)
            first = f;
        else
            last->link.set(f);
        last = f;
    }
    next_.set(heap_.next());
    return first;
}

}  // namespace ums::sched
