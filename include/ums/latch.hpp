// SPDX-License-Identifier: MIT
#pragma once

// ums/latch.hpp: a count that goes down once, and those who wait until it is zero. Same API
// as std's.
//
// Blocking:  wait() parks the fiber, never its processor; a plain kernel thread waits on a futex.
//            count_down() and try_wait() never block. Not from a signal handler.
// Fairness:  the last count_down() lets all waiters go.
// Ordering:  what happens before each count_down() is visible after a wait(), and after a
//            try_wait() that returned true.
// Lifetime:  may be destroyed by whoever has seen the count at zero, once all wait() have returned,
//            even while the last count_down() is still returning.
// Errors:    a negative count, or a count_down() by more than is left, ends the program with a
//            message. try_wait() does not fail spuriously.
// Cost:      count_down() one compare-and-swap; wait() one load if the count is zero.

#include <chrono>
#include <cstddef>
#include <stop_token>

#include "ums/deadline.hpp"
#include "ums/impl/gate.hpp"

namespace ums {

class latch {
public:
    [[nodiscard]] static constexpr std::ptrdiff_t max() noexcept { return impl::gate_state::most; }

    // Requires: 0 <= expected.
    constexpr explicit latch(std::ptrdiff_t expected) noexcept : state_{expected} {}
    latch(const latch&) = delete;
    latch& operator=(const latch&) = delete;

    // Requires: n >= 0, and the count is at least n.
    void count_down(std::ptrdiff_t n = 1) { calls::count_down(state_, n); }
    [[nodiscard]] bool try_wait() const noexcept { return calls::is_open(state_); }
    void wait() const { calls::wait(state_); }
    void arrive_and_wait(std::ptrdiff_t n = 1) {
        count_down(n);
        wait();
    }

    // False once the time has passed. Prefers the zero if both happen.
    template <class Rep, class Period>
    [[nodiscard]] bool wait_for(const std::chrono::duration<Rep, Period>& d) const {
        return calls::wait_until(state_, deadline_after(d));
    }
    template <class Clock, class Duration>
    [[nodiscard]] bool wait_until(const std::chrono::time_point<Clock, Duration>& t) const {
        return impl::until(t, [this](deadline limit) { return calls::wait_until(state_, limit); });
    }

    // False once a stop is requested. Prefers the zero if both happen.
    [[nodiscard]] bool wait(const std::stop_token& stop) const {
        return calls::wait_or_stop(state_, stop);
    }

private:
    using calls = impl::gate_calls;
    mutable impl::gate_state state_;
};

}  // namespace ums
