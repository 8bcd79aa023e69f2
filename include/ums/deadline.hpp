// SPDX-License-Identifier: MIT
#pragma once

// ums/deadline.hpp: an absolute CLOCK_MONOTONIC time. All waiting is against one.

#include <chrono>
#include <type_traits>

namespace ums {

using deadline = std::chrono::steady_clock::time_point;

// Now + d, rounded up to the clock's tick; now if d is negative. A duration too long for the clock is
// for ever.
template <class Rep, class Period>
[[nodiscard]] deadline deadline_after(const std::chrono::duration<Rep, Period>& d) noexcept {
    using clock = std::chrono::steady_clock;
    const auto now = clock::now();
    if (!(d > d.zero())) return now;
    // Compared in floating point: the conversion itself might overflow.
    const std::chrono::duration<double> wanted = d, most = deadline::max() - now;
    if (wanted >= most) return deadline::max();
    const auto ticks = std::chrono::ceil<clock::duration>(d);
    return now + ticks;
}

namespace impl {

// `t` in the clock's own ticks, rounded up: passed at the same reading of it. What is beyond its first or last
// tick is that one.
template <class Clock, class Duration>
[[nodiscard]] auto in_ticks(const std::chrono::time_point<Clock, Duration>& t) noexcept {
    using ticks = typename Clock::duration;
    using time_point = std::chrono::time_point<Clock, ticks>;
    if constexpr (std::is_same_v<Duration, ticks>) {
        return t;
    } else {
        // Compared in floating point: the conversion itself might overflow.
        const std::chrono::duration<double> wanted = t.time_since_epoch();
        if (wanted >= std::chrono::duration<double>{ticks::max()}) return time_point::max();
        if (wanted <= std::chrono::duration<double>{ticks::min()}) return time_point::min();
        return time_point{std::chrono::ceil<ticks>(t.time_since_epoch())};
    }
}

// Whether `t` is still to come. A bare now() < t converts both to the finer unit, which may overflow.
template <class Clock, class Duration>
[[nodiscard]] bool is_ahead(const std::chrono::time_point<Clock, Duration>& t) {
    return Clock::now() < in_ticks(t);
}

// As far from now as `at` is from `from`, its clock's now.
template <class Time>
[[nodiscard]] deadline deadline_from(const Time& from, const Time& at) noexcept {
    if (!(at > from)) return deadline::clock::now();
    // Before a clock's epoch: the distance itself might overflow.
    using ticks = typename Time::duration;
    const ticks since = from.time_since_epoch();
    if (since < ticks::zero() && at.time_since_epoch() > ticks::max() + since)
        return deadline::max();
    return deadline_after(at - from);
}

}  // namespace impl

// The deadline at `t`. Exact for the steady clock, whatever its ticks (rounded up); for another clock as far
// from now as `t` is by that clock, which a change of it does not move. A time too far for the clock is for ever.
template <class Clock, class Duration>
[[nodiscard]] deadline deadline_at(const std::chrono::time_point<Clock, Duration>& t) noexcept {
    if constexpr (std::is_same_v<Clock, deadline::clock>)
        return impl::in_ticks(t);
    else
        return impl::deadline_from(Clock::now(), impl::in_ticks(t));
}

namespace impl {

// Calls wait(deadline) until it returns true or `t` has passed by its own clock; at least once. Returns what it
// returned. For a clock that can be set.
template <class Clock, class Duration, class Wait>
bool until(const std::chrono::time_point<Clock, Duration>& t, Wait wait) {
    if constexpr (std::is_same_v<Clock, deadline::clock>) {
        return wait(deadline_at(t));
    } else {
        do {
            if (wait(deadline_at(t))) return true;
        } while (is_ahead(t));
        return false;
    }
}

}  // namespace impl

}  // namespace ums
