// SPDX-License-Identifier: MIT
#pragma once

// ums/deadline.hpp: an absolute CLOCK_MONOTONIC time. All waiting is against one.

#include <chrono>

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

}  // namespace ums
