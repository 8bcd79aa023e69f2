// SPDX-License-Identifier: MIT
#pragma once

// ums/barrier.hpp: a group of fibers and threads that wait for each other, phase after phase. Same
// API as std's.
//
// A phase ends when as many have arrived as the barrier expects. The last to arrive calls the
// completion function; then all waiters continue, and the next phase has begun.
//
// Blocking:  wait() parks the fiber, never its processor; a plain kernel thread waits on a futex.
//            arrive() blocks only if its completion function does. Not from a signal handler.
// Fairness:  the end of a phase releases all waiters.
// Ordering:  what happens before each arrival is visible to the completion function. What the
//            completion function does is visible after the wait().
// Lifetime:  may be destroyed as soon as every user has returned from its wait() for the last
//            phase, even while the last arrival is still returning.
// Errors:    a negative count, or more arrivals than the phase still expects, end the program with
//            a message. The completion function must not throw and must not use the barrier.
// Cost:      one short lock section for each arrival and one for each wait; arrive_and_wait() has
//            one.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "ums/deadline.hpp"
#include "ums/export.hpp"
#include "ums/impl/misuse.hpp"
#include "ums/impl/wait_list.hpp"

namespace ums {

namespace impl {

struct barrier_state {
    wait_list waiters;

    // Guarded by its lock:
    std::ptrdiff_t expected;  // Arrivals that the next phase expects.
    std::ptrdiff_t missing;   // Arrivals that this phase still expects.
    std::uint64_t phase = 0;

    constexpr explicit barrier_state(std::ptrdiff_t count) noexcept
        : expected{count}, missing{count} {
        if (count < 0) misuse("a barrier that expects a negative number");
    }
};

struct barrier_calls {
    struct arrival {
        std::uint64_t phase;
        bool is_last;  // The caller must call the completion function, then complete().
    };
    // With `drop` the phases that follow expect one arrival less.
    UMS_EXPORT static arrival arrive(barrier_state& b, std::ptrdiff_t n, bool drop) noexcept;
    // False: the caller arrived last and has not waited.
    UMS_EXPORT static bool arrive_and_wait(barrier_state& b) noexcept;
    UMS_EXPORT static void complete(barrier_state& b) noexcept;
    UMS_EXPORT static bool wait(barrier_state& b, std::uint64_t phase, deadline limit,
                                const std::stop_token* stop) noexcept;
};

struct no_completion {
    constexpr void operator()() const noexcept {}
};

}  // namespace impl

template <class CompletionFunction = impl::no_completion>
class barrier {
    static_assert(std::is_nothrow_invocable_v<CompletionFunction&>);

public:
    // Names the phase in which the caller arrived.
    class [[nodiscard]] arrival_token {
    public:
        arrival_token(arrival_token&&) = default;
        arrival_token& operator=(arrival_token&&) = default;

    private:
        friend class barrier;
        explicit arrival_token(std::uint64_t phase) noexcept : phase_{phase} {}
        std::uint64_t phase_;
    };

    [[nodiscard]] static constexpr std::ptrdiff_t(max)() noexcept {
        return (std::numeric_limits<std::ptrdiff_t>::max)();
    }

    // Requires: 0 <= expected.
    constexpr explicit barrier(std::ptrdiff_t expected,
                               CompletionFunction completion = CompletionFunction())
        : state_{expected}, completion_(std::move(completion)) {}
    barrier(const barrier&) = delete;
    barrier& operator=(const barrier&) = delete;

    // Arrives `n` times and does not wait. The last arrival calls the completion function.
    // Requires: 0 < n, and the phase still expects at least n.
    [[nodiscard]] arrival_token arrive(std::ptrdiff_t n = 1) {
        return arrival_token{arrived(calls::arrive(state_, n, false))};
    }

    // Waits for the end of the token's phase, which is the current phase or the one before it.
    void wait(arrival_token&& token) const {
        (void)calls::wait(state_, token.phase_, (deadline::max)(), nullptr);
    }

    // Arrives once and waits for the end of the phase. The last to arrive calls the completion
    // function.
    void arrive_and_wait() {
        if (!calls::arrive_and_wait(state_)) complete();
    }

    // Arrives once, for the last time: the phases that follow expect one less. Does not wait.
    void arrive_and_drop() { (void)arrived(calls::arrive(state_, 1, true)); }

    // False once the time has passed; the caller may wait for the token again. If the phase ends at
    // the same moment, the end wins.
    template <class Rep, class Period>
    [[nodiscard]] bool wait_for(arrival_token& token,
                                const std::chrono::duration<Rep, Period>& d) const {
        return calls::wait(state_, token.phase_, deadline_after(d), nullptr);
    }
    template <class Clock, class Duration>
    [[nodiscard]] bool wait_until(arrival_token& token,
                                  const std::chrono::time_point<Clock, Duration>& t) const {
        return impl::until(t, [this, &token](deadline limit) {
            return calls::wait(state_, token.phase_, limit, nullptr);
        });
    }

    // The same with a stop: false once a stop is requested.
    [[nodiscard]] bool wait(arrival_token& token, const std::stop_token& stop) const {
        return calls::wait(state_, token.phase_, (deadline::max)(), &stop);
    }

private:
    using calls = impl::barrier_calls;

    std::uint64_t arrived(calls::arrival a) {
        if (a.is_last) complete();
        return a.phase;
    }
    void complete() {
        completion_();
        calls::complete(state_);
    }

    mutable impl::barrier_state state_;
    [[no_unique_address]] CompletionFunction completion_;
};

}  // namespace ums
