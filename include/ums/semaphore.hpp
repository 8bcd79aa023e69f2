// SPDX-License-Identifier: MIT
#pragma once

// ums/semaphore.hpp: counting semaphores for fibers and kernel threads. Same API as std's.
//
// A semaphore holds permits. acquire() takes one and waits while there are none; release() adds
// permits and gives them to the waiters.
//
// Blocking:  acquire() parks the fiber, never its processor; a plain kernel thread waits on a
//            futex. release() and try_acquire() never block. Not from a signal handler.
// Fairness:  first come, first served. A permit released while there are waiters goes to the first
//            of them; a running caller cannot barge past, and try_acquire() fails then.
// Ordering:  what happens before a release() is visible after the acquire() that took its permit.
// Lifetime:  may be destroyed as soon as the last acquire() has returned, even while the release()
//            that woke it is still returning.
// Errors:    a negative count, or one above max(), at the start or by release(), ends the program
//            with a message. try_acquire() does not fail spuriously.
// Cost:      one compare-and-swap each when nobody waits. With one waiter, one more on each side
//            and a switch. From the second waiter on, two short lock sections.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stop_token>

#include "ums/deadline.hpp"
#include "ums/export.hpp"
#include "ums/impl/misuse.hpp"
#include "ums/impl/wait_list.hpp"

namespace ums {

namespace impl {

// The permits, or the waiters; see src/sync/semaphore.cpp.
struct semaphore_state {
    std::uintptr_t word = 0;
    wait_list waiters;

    constexpr semaphore_state(std::ptrdiff_t permits, std::ptrdiff_t most) noexcept {
        if (permits < 0 || permits > most)
            misuse("a semaphore with less than 0 or more than max() permits");
        word = static_cast<std::uintptr_t>(permits) * 2;
    }
};

struct semaphore_calls {
    UMS_EXPORT static void acquire(semaphore_state& s) noexcept;
    UMS_EXPORT static bool try_acquire(semaphore_state& s) noexcept;
    UMS_EXPORT static bool acquire_until(semaphore_state& s, deadline limit);
    UMS_EXPORT static bool acquire_or_stop(semaphore_state& s, const std::stop_token& stop,
                                           deadline limit = (deadline::max)());
    // The free permits at that moment.
    UMS_EXPORT static std::ptrdiff_t permits(const semaphore_state& s) noexcept;
    UMS_EXPORT static void release(semaphore_state& s, std::ptrdiff_t n,
                                   std::ptrdiff_t most) noexcept;
    // Adds one permit, unless there is one already.
    UMS_EXPORT static void release_if_none(semaphore_state& s) noexcept;
};

}  // namespace impl

template <std::ptrdiff_t least_max_value = (std::numeric_limits<std::ptrdiff_t>::max)()>
class counting_semaphore {
    static_assert(least_max_value >= 0);

public:
    // The most permits there may be.
    [[nodiscard]] static constexpr std::ptrdiff_t(max)() noexcept { return least_max_value; }

    // Requires: 0 <= permits <= max().
    constexpr explicit counting_semaphore(std::ptrdiff_t permits) noexcept
        : state_{permits, (max)()} {}
    counting_semaphore(const counting_semaphore&) = delete;
    counting_semaphore& operator=(const counting_semaphore&) = delete;

    // Adds `n` permits. Requires: n >= 0, and the permits do not exceed max().
    void release(std::ptrdiff_t n = 1) { calls::release(state_, n, (max)()); }

    // acquire() takes a permit and waits while there is none. try_acquire() does not wait; false:
    // there is none, or others are waiting.
    void acquire() { calls::acquire(state_); }
    [[nodiscard]] bool try_acquire() noexcept { return calls::try_acquire(state_); }

    // False once the time has passed. Tries at least once; if a permit comes at the same moment,
    // the permit wins.
    template <class Rep, class Period>
    [[nodiscard]] bool try_acquire_for(const std::chrono::duration<Rep, Period>& d) {
        return calls::acquire_until(state_, deadline_after(d));
    }
    template <class Clock, class Duration>
    [[nodiscard]] bool try_acquire_until(const std::chrono::time_point<Clock, Duration>& t) {
        return impl::until(t,
                           [this](deadline limit) { return calls::acquire_until(state_, limit); });
    }

    // False once a stop is requested. If a permit comes at the same moment, the permit wins.
    [[nodiscard]] bool acquire(const std::stop_token& stop) {
        return calls::acquire_or_stop(state_, stop);
    }

private:
    using calls = impl::semaphore_calls;
    impl::semaphore_state state_;
};

using binary_semaphore = counting_semaphore<1>;

}  // namespace ums
