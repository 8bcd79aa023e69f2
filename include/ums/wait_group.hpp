// SPDX-License-Identifier: MIT
#pragma once

// ums/wait_group.hpp: waits until all of some work is done; how much may grow meanwhile. As Go's
// sync.WaitGroup.
//
//   ums::wait_group work;
//   for (...) { work.add(); ums::spawn([&] { ...; work.done(); }); }
//   work.wait();
//
// Blocking:  wait() parks the fiber, never its processor; a plain kernel thread waits on a futex.
//            add() and done() never block. Not from a signal handler.
// Fairness:  who brings the count to zero lets all waiters go.
// Ordering:  what happens before each done() is visible after the wait() that it ended.
// Lifetime:  may be used again as soon as the count is zero: an add() that comes then does not hold
//            those who were waiting. May be destroyed by whoever has seen the count at zero, once
//            all wait() have returned, even while the last done() is still returning.
// Errors:    a count that would become negative ends the program with a message.
// Cost:      add() and done() one compare-and-swap; wait() one load if the count is zero.

#include <chrono>
#include <cstddef>
#include <stop_token>

#include "ums/deadline.hpp"
#include "ums/impl/gate.hpp"

namespace ums {

class wait_group {
public:
    constexpr wait_group() noexcept = default;

    // Requires: 0 <= count.
    constexpr explicit wait_group(std::ptrdiff_t count) noexcept : state_{count} {}
    wait_group(const wait_group&) = delete;
    wait_group& operator=(const wait_group&) = delete;

    // Adds `n`, which may be negative, to the count. The add() for some work comes before a wait()
    // for it, so not from within that work.
    void add(std::ptrdiff_t n = 1) noexcept { calls::add(state_, n); }
    void done() noexcept { calls::count_down(state_, 1); }

    [[nodiscard]] bool try_wait() const noexcept { return calls::is_open(state_); }
    void wait() const { calls::wait(state_); }

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
    mutable impl::gate_state state_{0};
};

}  // namespace ums
