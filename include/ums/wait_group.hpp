// SPDX-License-Identifier: MIT
#pragma once

// ums/wait_group.hpp: waits until a set of tasks is done; the set may grow meanwhile. As Go's
// sync.WaitGroup.
//
//   ums::wait_group work;
//   for (...) { work.add(); ums::fiber{[&] { ...; work.done(); }}.detach(); }
//   work.wait();
//
// Blocking:  wait() parks the fiber, never its processor; a plain kernel thread waits on a futex.
//            add() and done() never block. Not from a signal handler.
// Fairness:  the call that brings the count to zero releases all waiters.
// Ordering:  what happens before each done() is visible after the wait() that it ended.
// Lifetime:  may be used again as soon as the count is zero: an add() that comes then does not hold
//            back the earlier waiters. A caller that has seen the count at zero may destroy it once
//            all wait() calls have returned, even while the last done() is still returning.
// Errors:    a count that would become negative ends the program with a message.
// Cost:      add() and done() cost one compare-and-swap; wait() one load if the count is zero.

#include <cstddef>

#include "ums/impl/gate.hpp"

namespace ums {

// try_wait(), wait(), wait_for(duration), wait_until(time_point) and wait(std::stop_token) wait for
// the zero. The last three return false once the time has passed or a stop is requested; if the
// count reaches zero at the same moment, the zero wins.
class wait_group : public impl::gate {
public:
    // The count begins at zero.
    constexpr wait_group() noexcept : gate{0} {}

    // Requires: 0 <= count.
    constexpr explicit wait_group(std::ptrdiff_t count) noexcept : gate{count} {}

    // Adds `n`, which may be negative, to the count. Call add() for a task before a wait() for it
    // begins, so not from within the task.
    void add(std::ptrdiff_t n = 1) noexcept { calls::add(state_, n); }
    // Takes one from the count.
    void done() noexcept { calls::count_down(state_, 1); }
};

}  // namespace ums
