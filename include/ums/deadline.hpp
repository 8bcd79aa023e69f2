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

// The deadline at `t`. Exact for the steady clock, whatever its ticks (rounded up); for another clock as far
// from now as `t` is by that clock, which a change of it does not move.
template <class Clock, class Duration>
[[nodiscard]] deadline deadline_at(const std::chrono::time_point<Clock, Duration>& t) noexcept {
    using clock = std::chrono::steady_clock;
    if constexpr (std::is_same_v<Clock, clock>) {
        // Compared in floating point: the conversion itself might overflow.
        const std::chrono::duration<double> wanted = t.time_since_epoch();
        if (wanted >= std::chrono::duration<double>{clock::duration::max()}) return deadline::max();
        if (wanted <= std::chrono::duration<double>{clock::duration::min()}) return deadline::min();
        return deadline{std::chrono::ceil<clock::duration>(t.time_since_epoch())};
    } else {
        const auto now = Clock::now();
        return t > now ? deadline_after(t - now) : clock::now();
    }
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
        } while (Clock::now() < t);
        return false;
    }
}

}  // namespace impl

}  // namespace ums
