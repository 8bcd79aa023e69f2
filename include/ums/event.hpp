// SPDX-License-Identifier: MIT
#pragma once

// ums/event.hpp: something that has happened, or not yet. As the event objects of Windows.
//
// A manual_reset_event that is set lets everybody through until it is reset. An auto_reset_event
// lets one waiter through for each set(), and is then not set again; a set() while nobody waits is
// remembered, but only one.
//
// Blocking:  wait() parks the fiber, never its processor; a plain kernel thread waits on a futex.
//            set(), reset(), is_set() and try_wait() never block. Not from a signal handler.
// Fairness:  auto_reset_event: first come, first served; a running caller cannot barge past the
//            queue. manual_reset_event: set() lets all go who wait, even if a reset() follows at
//            once.
// Ordering:  what happens before a set() is visible after the wait() that it ended, also if the
//            event was set already.
// Lifetime:  may be destroyed by whoever has been let through, once all others' wait() have
//            returned, even while the set() that did it is still returning.
// Cost:      manual_reset_event: set() and reset() one compare-and-swap, wait() one load if it is
//            set. auto_reset_event: one compare-and-swap each when nobody waits.

#include <chrono>
#include <stop_token>

#include "ums/deadline.hpp"
#include "ums/impl/gate.hpp"
#include "ums/semaphore.hpp"

namespace ums {

// try_wait(), wait(), wait_for(duration), wait_until(time_point) and wait(std::stop_token) as those of
// auto_reset_event below, except that they leave it set.
class manual_reset_event : public impl::gate {
public:
    constexpr explicit manual_reset_event(bool is_set = false) noexcept : gate{is_set ? 0 : 1} {}

    void set() noexcept { calls::open(state_); }
    void reset() noexcept { calls::close(state_); }
    [[nodiscard]] bool is_set() const noexcept { return try_wait(); }
};

class auto_reset_event {
public:
    constexpr explicit auto_reset_event(bool is_set = false) noexcept : state_{is_set ? 1 : 0, 1} {}
    auto_reset_event(const auto_reset_event&) = delete;
    auto_reset_event& operator=(const auto_reset_event&) = delete;

    void set() noexcept { calls::release_if_none(state_); }
    void reset() noexcept { (void)try_wait(); }

    // Whether it was set; it is not any more.
    [[nodiscard]] bool try_wait() noexcept { return calls::try_acquire(state_); }
    void wait() { calls::acquire(state_); }

    // False once the time has passed. Prefers the event if both happen.
    template <class Rep, class Period>
    [[nodiscard]] bool wait_for(const std::chrono::duration<Rep, Period>& d) {
        return calls::acquire_until(state_, deadline_after(d));
    }
    template <class Clock, class Duration>
    [[nodiscard]] bool wait_until(const std::chrono::time_point<Clock, Duration>& t) {
        return impl::until(t,
                           [this](deadline limit) { return calls::acquire_until(state_, limit); });
    }

    // False once a stop is requested. Prefers the event if both happen.
    [[nodiscard]] bool wait(const std::stop_token& stop) {
        return calls::acquire_or_stop(state_, stop);
    }

private:
    using calls = impl::semaphore_calls;
    impl::semaphore_state state_;
};

}  // namespace ums
