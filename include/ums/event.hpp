// SPDX-License-Identifier: MIT
#pragma once

// ums/event.hpp: something that has happened, or has not yet. As the event objects of Windows.
//
// A set manual_reset_event lets everybody through until it is reset. An auto_reset_event lets one
// waiter through for each set(), and is then not set again. It remembers a set() while nobody
// waits, but only one.
//
// Blocking:  wait() parks the fiber, never its processor; a plain kernel thread waits on a futex.
//            set(), reset(), is_set() and try_wait() never block. Not from a signal handler.
// Fairness:  auto_reset_event: first come, first served; a running caller cannot barge past the
//            queue. manual_reset_event: set() releases all waiters, even if a reset() follows at
//            once.
// Ordering:  what happens before a set() is visible after the wait() that it ended, also if the
//            event was already set.
// Lifetime:  a waiter that has been let through may destroy the event once all other wait() calls
//            have returned, even while the set() that released it is still returning.
// Cost:      manual_reset_event: set() and reset() cost one compare-and-swap, wait() one load if
//            the event is set. auto_reset_event: one compare-and-swap each when nobody waits.

#include <chrono>
#include <stop_token>

#include "ums/deadline.hpp"
#include "ums/impl/gate.hpp"
#include "ums/semaphore.hpp"

namespace ums {

// Has try_wait(), wait(), wait_for(duration), wait_until(time_point) and wait(std::stop_token), as
// auto_reset_event below, except that they leave the event set.
class manual_reset_event : public impl::gate {
public:
    // Set at first, or not.
    constexpr explicit manual_reset_event(bool is_set = false) noexcept : gate{is_set ? 0 : 1} {}

    // set() lets everybody through from now on; reset() ends that. They never block.
    void set() noexcept { calls::open(state_); }
    void reset() noexcept { calls::close(state_); }
    [[nodiscard]] bool is_set() const noexcept { return try_wait(); }
};

class auto_reset_event {
public:
    constexpr explicit auto_reset_event(bool is_set = false) noexcept : state_{is_set ? 1 : 0, 1} {}
    auto_reset_event(const auto_reset_event&) = delete;
    auto_reset_event& operator=(const auto_reset_event&) = delete;

    // set() lets one waiter through, or remembers that the event is set; reset() forgets it. They
    // never block.
    void set() noexcept { calls::release_if_none(state_); }
    void reset() noexcept { (void)try_wait(); }

    // Takes the event and returns true if it was set. Does not wait.
    [[nodiscard]] bool try_wait() noexcept { return calls::try_acquire(state_); }
    // Waits until the event is set, and takes it.
    void wait() { calls::acquire(state_); }

    // False once the time has passed. If the event is set at the same moment, the event wins.
    template <class Rep, class Period>
    [[nodiscard]] bool wait_for(const std::chrono::duration<Rep, Period>& d) {
        return calls::acquire_until(state_, deadline_after(d));
    }
    template <class Clock, class Duration>
    [[nodiscard]] bool wait_until(const std::chrono::time_point<Clock, Duration>& t) {
        return impl::until(t,
                           [this](deadline limit) { return calls::acquire_until(state_, limit); });
    }

    // False once a stop is requested. If the event is set at the same moment, the event wins.
    [[nodiscard]] bool wait(const std::stop_token& stop) {
        return calls::acquire_or_stop(state_, stop);
    }

private:
    using calls = impl::semaphore_calls;
    impl::semaphore_state state_;
};

}  // namespace ums
