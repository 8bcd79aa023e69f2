// SPDX-License-Identifier: MIT
#pragma once

// sched/queue/timer_queue.hpp: the deadlines of the fibers that went to sleep on one processor.
//
// The processor owns it in the sense that it fires the deadlines. It has a lock, because a waiter
// that was woken early cancels from wherever it runs now, and an idle processor fires for one that
// is stuck in a long computation.
//
// A deadline is delivered while the lock is held (one compare-and-swap on the waiter's word), and
// cancel() takes the same lock: after cancel() no delivery is under way, so the timer, which lies
// on the waiter's stack, may be destroyed.

#include "base/atomic.hpp"
#include "base/look_inside.hpp"
#include "os/clock.hpp"
#include "os/lock.hpp"
#include "sched/fiber/fiber.hpp"
#include "time/timer_heap.hpp"

namespace ums::sched {

struct fiber_timer : timers::timer {
    explicit fiber_timer(fiber& f) noexcept : who{&f} {}
    fiber* who;
};

class timer_queue {
public:
    void add(fiber_timer& t) noexcept;

    // Returns whether it was still queued: false means that the deadline has been delivered.
    bool cancel(fiber_timer& t) noexcept;

    // Delivers deadlines up to `now`, at most `most`. Returns the fibers that this woke, linked by
    // `link`: the caller owns them and makes them ready.
    fiber* fire(os::nanoseconds now, unsigned most) noexcept;

    // The earliest deadline; only a hint, except for the holder of the lock.
    [[nodiscard]] os::nanoseconds next() const noexcept { return next_.get(); }

private:
    friend struct ums::look_inside;

    base::owned<os::nanoseconds> next_{os::never};

    os::lock lock_{os::lock_rank::timers};
    // Guarded by lock_:
    timers::timer_heap heap_;
};

}  // namespace ums::sched
