// SPDX-License-Identifier: MIT
#pragma once

// ums/latch.hpp: a count that goes down once; waiters wait until it is zero. Same API as std's.
//
// Blocking:  wait() parks the fiber, never its processor; a plain kernel thread waits on a futex.
//            count_down() and try_wait() never block. Not from a signal handler.
// Fairness:  the last count_down() releases all waiters.
// Ordering:  what happens before each count_down() is visible after a wait(), and after a
//            try_wait() that returned true.
// Lifetime:  a caller that has seen the count at zero may destroy the latch once all wait() calls
//            have returned, even while the last count_down() is still returning.
// Errors:    a negative count, or a count_down() by more than is left, ends the program with a
//            message. try_wait() does not fail spuriously.
// Cost:      count_down() costs one compare-and-swap; wait() one load if the count is zero.

#include <cstddef>

#include "ums/impl/gate.hpp"

namespace ums {

// try_wait(), wait(), wait_for(duration), wait_until(time_point) and wait(std::stop_token) wait for
// the zero. The last three return false once the time has passed or a stop is requested; if the
// count reaches zero at the same moment, the zero wins.
class latch : public impl::gate {
public:
    // The greatest count.
    [[nodiscard]] static constexpr std::ptrdiff_t(max)() noexcept { return impl::gate_state::most; }

    // Requires: 0 <= expected.
    constexpr explicit latch(std::ptrdiff_t expected) noexcept : gate{expected} {}

    // Takes `n` from the count. Requires: n >= 0, and the count is at least n.
    void count_down(std::ptrdiff_t n = 1) { calls::count_down(state_, n); }
    void arrive_and_wait(std::ptrdiff_t n = 1) {
        count_down(n);
        wait();
    }
};

}  // namespace ums
