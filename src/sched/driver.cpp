// SPDX-License-Identifier: MIT
#include "sched/driver.hpp"

#include "base/assert.hpp"
#include "base/chain.hpp"
#include "os/futex.hpp"
#include "os/lock.hpp"

namespace ums::sched {

namespace {

constinit os::lock standby_lock;
// Guarded by it:
constinit driver* first_standby = nullptr;

}  // namespace

constinit base::atomic<event_source*> driver::source_;
constinit base::atomic<driver*> driver::inside_;

fiber* driver::wait(os::nanoseconds limit, bool inside) noexcept {
    // sync(driver): sees what the notifier did before.
    if (state_.exchange(nothing, base::acquire) == notified) return nullptr;
    if (inside) {
        fiber* arrived = nullptr;
        for (;;) {
            event_source* s = source_.load(base::acquire);  // sync(event_source)
            if (s != nullptr && wait_inside(*s, limit, arrived)) return arrived;
            stand_by();
            // Looks again, after taking the list's lock: see the header.
            if (source_.load(base::acquire) == nullptr || inside_.load(base::acquire) != nullptr)
                break;
            stand_down();
        }
    }
    os::futex_wait(state_, nothing, limit);
    state_.exchange(nothing, base::acquire);  // sync(driver): as above.
    if (inside) stand_down();
    return nullptr;
}

// Returns false if another one is inside.
bool driver::wait_inside(event_source& s, os::nanoseconds limit, fiber*& arrived) noexcept {
    driver* nobody = nullptr;
    // sync(driver.inside): orders what one does inside before the next.
    if (!inside_.compare_exchange(nobody, this, base::acquire, base::relaxed)) return false;
    std::uint32_t seen = nothing;
    // sync(driver): sees what a notifier did before, if there was one.
    if (state_.compare_exchange(seen, in_source, base::acquire, base::acquire)) {
        arrived = s.wait(limit);
    }
    state_.exchange(nothing, base::acquire);
    UMS_ASSERT(inside_.load(base::relaxed) == this, "two drivers wait inside of one engine");
    inside_.store(nullptr, base::release);  // sync(driver.inside)
    send_a_standby();
    return true;
}

fiber* driver::poll_inside(event_source& s) noexcept {
    driver* nobody = nullptr;
    // sync(driver.inside): as above.
    if (!inside_.compare_exchange(nobody, this, base::acquire, base::relaxed)) return nullptr;
    fiber* const arrived = s.poll();
    inside_.store(nullptr, base::release);  // sync(driver.inside)
    send_a_standby();
    return arrived;
}

void driver::stand_by() noexcept {
    const os::lock_guard guard{standby_lock};
    if (is_standby_) return;
    UMS_ASSERT(inside_.load(base::relaxed) != this, "a driver stands by for itself");
    is_standby_ = true;
    base::chain::push_front(first_standby, *this, &driver::next_standby_);
}

void driver::stand_down() noexcept {
    const os::lock_guard guard{standby_lock};
    if (!is_standby_) return;
    is_standby_ = false;
    base::chain::remove(first_standby, *this, &driver::next_standby_);
}

void driver::send_a_standby() noexcept {
    const os::lock_guard guard{standby_lock};
    driver* d = base::chain::pop_front(first_standby, &driver::next_standby_);
    if (d == nullptr) return;
    UMS_ASSERT(d->is_standby_, "a driver is sent that does not stand by");
    d->is_standby_ = false;
    // Under the lock: it leaves the list of standbys, and so keeps existing, before it leaves its
    // wait.
    d->notify();
}

void driver::set_source(event_source* s) noexcept {
    source_.store(s, base::release);  // sync(event_source): publishes the engine.
    if (s != nullptr) send_a_standby();
}

void driver::notify() noexcept {
    // sync(driver): publishes to the waiter. The exchange saves a second notify a second system
    // call.
    const std::uint32_t before = state_.exchange(notified, base::acq_rel);
    if (before == nothing)
        os::futex_wake(state_.address());
    else if (before == in_source)
        source_.load(base::acquire)->interrupt();  // sync(event_source)
}

}  // namespace ums::sched
