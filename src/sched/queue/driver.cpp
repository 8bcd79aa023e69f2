// SPDX-License-Identifier: MIT
#include "sched/queue/driver.hpp"

#include <new>

#include "os/futex.hpp"

namespace ums::sched {

constinit base::atomic<event_source*> driver::source_;
constinit place_inside<driver> driver::place_;

fiber* driver::wait(os::nanoseconds limit, bool inside) noexcept {
    // sync(driver): sees what the notifier did before.
    if (state_.exchange(nothing, base::acquire) == notified) return nullptr;
    if (inside) {
        fiber* arrived = nullptr;
        for (;;) {
            event_source* s = source_.load(base::acquire);  // sync(event_source)
            if (s != nullptr && wait_inside(*s, limit, arrived)) return arrived;
            place_.stand_by(*this);
            // Looks again: see the header.
            if (source_.load(base::acquire) == nullptr || place_.is_taken()) break;
            place_.stand_down(*this);
        }
    }
    os::futex_wait(state_, nothing, limit);
    state_.exchange(nothing, base::acquire);  // sync(driver): as above.
    if (inside) place_.stand_down(*this);
    return nullptr;
}

// Returns false if another one is inside.
bool driver::wait_inside(event_source& s, os::nanoseconds limit, fiber*& arrived) noexcept {
    if (!place_.take(*this)) return false;
    std::uint32_t seen = nothing;
    // sync(driver): sees what a notifier did before, if there was one.
    if (state_.compare_exchange(seen, in_source, base::acquire, base::acquire)) {
        arrived = s.wait(limit);
    }
    state_.exchange(nothing, base::acquire);
    place_.leave(*this);
    return true;
}

fiber* driver::poll_inside(event_source& s) noexcept {
    if (!place_.take(*this)) return nullptr;
    fiber* const arrived = s.poll();
    place_.leave(*this);
    return arrived;
}

void driver::set_source(event_source* s) noexcept {
    source_.store(s, base::release);  // sync(event_source): publishes the engine.
    if (s != nullptr) place_.send_a_standby();
}

void driver::leave_behind() noexcept {
    ::new (&place_) place_inside<driver>;
    source_.store(nullptr, base::relaxed);  // relaxed: there is one thread.
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
