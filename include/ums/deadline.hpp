// SPDX-License-Identifier: MIT
#pragma once

// ums/deadline.hpp: an absolute CLOCK_MONOTONIC time. All waiting is against one.
//
// A wait whose deadline has passed still succeeds if it need not wait. deadline::max() means for
// ever.
//
// Blocking: never.
// Errors:   none. Times that the clock cannot hold are clamped, they do not overflow.
// Cost:     a reading of the clock.

#include <chrono>
#include <type_traits>

namespace ums {

using deadline = std::chrono::steady_clock::time_point;

// Now + d, rounded up to the clock's tick. A negative `d` gives now; a duration too long for the
// clock gives deadline::max().
template <class Rep, class Period>
[[nodiscard]] deadline deadline_after(const std::chrono::duration<Rep, Period>& d) noexcept {
    using clock = std::chrono::steady_clock;
    const auto now = clock::now();
    if (!(d > d.zero())) return now;
    // Compares in floating point: the conversion itself might overflow.
    const std::chrono::duration<double> wanted = d, most = (deadline::max)() - now;
    if (wanted >= most) return (deadline::max)();
    const auto ticks = std::chrono::ceil<clock::duration>(d);
    return now + ticks;
}

namespace impl {

// `t` in the clock's own ticks, rounded up, so that it passes at the same reading of the clock. A
// time before the first tick or after the last gives that tick.
template <class Clock, class Duration>
[[nodiscard]] auto in_ticks(const std::chrono::time_point<Clock, Duration>& t) noexcept {
    using ticks = typename Clock::duration;
    using time_point = std::chrono::time_point<Clock, ticks>;
    if constexpr (std::is_same_v<Duration, ticks>) {
        return t;
    } else {
        // Compares in floating point: the conversion itself might overflow.
        const std::chrono::duration<double> wanted = t.time_since_epoch();
        if (wanted >= std::chrono::duration<double>{(ticks::max)()}) return (time_point::max)();
        if (wanted <= std::chrono::duration<double>{(ticks::min)()}) return (time_point::min)();
        return time_point{std::chrono::ceil<ticks>(t.time_since_epoch())};
    }
}

// Whether `t` is still to come. A bare now() < t converts both to the finer unit and may overflow.
template <class Clock, class Duration>
[[nodiscard]] bool is_ahead(const std::chrono::time_point<Clock, Duration>& t) {
    return Clock::now() < in_ticks(t);
}

// The deadline that is as far from now as `at` is from `from`, the present time of its clock.
template <class Time>
[[nodiscard]] deadline deadline_from(const Time& from, const Time& at) noexcept {
    if (!(at > from)) return deadline::clock::now();
    // With a time before the clock's epoch the distance itself might overflow.
    using ticks = typename Time::duration;
    const ticks since = from.time_since_epoch();
    if (since < ticks::zero() && at.time_since_epoch() > (ticks::max)() + since)
        return (deadline::max)();
    return deadline_after(at - from);
}

}  // namespace impl

// The deadline at `t`. For the steady clock it is exact, whatever the ticks (rounded up). For
// another clock it is as far from now as `t` is by that clock; setting that clock later does not
// move it. A time too far for the clock gives deadline::max().
template <class Clock, class Duration>
[[nodiscard]] deadline deadline_at(const std::chrono::time_point<Clock, Duration>& t) noexcept {
    if constexpr (std::is_same_v<Clock, deadline::clock>)
        return impl::in_ticks(t);
    else
        return impl::deadline_from(Clock::now(), impl::in_ticks(t));
}

namespace impl {

// Calls wait(deadline) at least once, until it returns true or `t` has passed by its own clock, and
// returns the last result. Serves clocks that can be set.
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
