// SPDX-License-Identifier: MIT
#pragma once

// sched/driver.hpp: what an idle processor waits in.
//
// The futex driver knows only notify(); an I/O engine is a driver that also brings completions.
//
// wait() and poll() are called by the carrier that holds the processor; notify() by anybody.
// A notify() that comes before wait() makes it return at once.

#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "os/futex.hpp"

namespace ums::sched {

class driver {
public:
    virtual ~driver() = default;

    // Waits for a notify(), an event, or `limit`. May return early.
    virtual void wait(os::nanoseconds limit) noexcept = 0;

    // Takes in events without waiting. Called at least every 61 switches if has_events().
    virtual void poll() noexcept {}
    [[nodiscard]] virtual bool has_events() const noexcept { return false; }

    virtual void notify() noexcept = 0;
};

class futex_driver final : public driver {
public:
    void wait(os::nanoseconds limit) noexcept override {
        // sync(futex_driver): sees what the notifier did before.
        if (notified_.exchange(0, base::acquire) != 0) return;
        os::futex_wait(notified_, 0, limit);
        notified_.exchange(0, base::acquire);
    }

    void notify() noexcept override {
        // sync(futex_driver): publishes to the waiter. The exchange keeps a second notify from a
        // second system call.
        if (notified_.exchange(1, base::acq_rel) == 0) os::futex_wake(notified_.address());
    }

private:
    alignas(base::cache_line) base::atomic<std::uint32_t> notified_;
};

}  // namespace ums::sched
