// SPDX-License-Identifier: MIT
#pragma once

// sched/queue/place_inside.hpp: the one place inside the I/O engine, and the drivers that wait for
// it.
//
// The place is not left empty while a driver waits for it. A driver that finds it taken joins the
// list of standbys, then looks at the place again. A driver that leaves the place does so first,
// and then looks whether the list has any. These four accesses are sequentially consistent, so in
// their one order the leaver's look comes after the entry in the list, or the standby's look after
// the leave. In the first case the leaver takes a standby from the list and notifies it. In the
// second the standby finds the place empty, or taken by a driver that looks at the list later. So
// the list's lock is only taken if there is a standby. place_inside_model_test runs all executions.
//
// any_ never says that there is no standby while one is in the list: it changes with the list,
// under the lock.

#include "base/assert.hpp"
#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "base/chain.hpp"
#include "os/lock.hpp"

namespace ums::sched {

// A Driver has notify(), and next_standby_ and is_standby_ for the list.
template <class Driver>
class place_inside {
public:
    // A hint, except after stand_by().
    [[nodiscard]] bool is_taken() const noexcept { return inside_.load(base::seq_cst) != nullptr; }

    // Returns false if another driver has it.
    [[nodiscard]] bool take(Driver& d) noexcept {
        Driver* nobody = nullptr;
        // sync(driver.inside): orders what one does inside before the next.
        return inside_.compare_exchange(nobody, &d, base::acquire, base::relaxed);
    }

    // Requires: it is d's.
    void leave(const Driver& d) noexcept {
        // relaxed: the caller has stored it.
        UMS_ASSERT(inside_.load(base::relaxed) == &d, "two drivers wait inside of one engine");
        // sync(driver.inside); seq_cst, both: see above.
        inside_.store(nullptr, base::seq_cst);
        if (any_.load(base::seq_cst)) send_a_standby();
    }

    // The caller looks again afterwards; if the place is empty, it stands down and tries to take
    // it.
    void stand_by(Driver& d) noexcept {
        const os::lock_guard guard{lock_};
        if (d.is_standby_) return;
        UMS_ASSERT(inside_.load(base::relaxed) != &d, "a driver stands by for itself");
        d.is_standby_ = true;
        base::chain::push_front(first_, d, &Driver::next_standby_);
        any_.store(true, base::seq_cst);  // Before the caller's look: see above.
    }

    // Does nothing if it does not stand by.
    void stand_down(Driver& d) noexcept {
        const os::lock_guard guard{lock_};
        if (!d.is_standby_) return;
        d.is_standby_ = false;
        base::chain::remove(first_, d, &Driver::next_standby_);
        // relaxed: a leaver that sees it late takes the lock for nothing.
        any_.store(first_ != nullptr, base::relaxed);
    }

    // Takes a standby from the list, if there is one, and notifies it.
    [[gnu::noinline]] void send_a_standby() noexcept {
        const os::lock_guard guard{lock_};
        Driver* const d = base::chain::pop_front(first_, &Driver::next_standby_);
        if (d == nullptr) return;
        any_.store(first_ != nullptr, base::relaxed);  // relaxed: as above.
        UMS_ASSERT(d->is_standby_, "a driver is sent that does not stand by");
        d->is_standby_ = false;
        // Under the lock: it leaves the list of standbys, and so keeps existing, before it leaves
        // its wait.
        d->notify();
    }

private:
    alignas(base::cache_line) base::atomic<Driver*> inside_;

    alignas(base::cache_line) os::lock lock_;
    // Guarded by lock_:
    Driver* first_ = nullptr;
    // Whether there is a standby. Written under lock_.
    base::atomic<bool> any_;
};

}  // namespace ums::sched
