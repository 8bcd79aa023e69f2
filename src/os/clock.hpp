// SPDX-License-Identifier: MIT
#pragma once

// os/clock.hpp: the one now().

#include <chrono>

#include "os/system.hpp"

namespace ums::os {

// CLOCK_MONOTONIC in nanoseconds; deadlines are made of it. A call takes about 20 ns (vdso).
using nanoseconds = long;

inline constexpr nanoseconds never = __LONG_MAX__;

inline nanoseconds now() noexcept {
    timespec t;
    system.clock_monotonic(&t);
    return t.tv_sec * 1'000'000'000L + t.tv_nsec;
}

// libstdc++'s and libc++'s steady_clock is CLOCK_MONOTONIC on Linux. A time before the clock's
// beginning becomes 0, so that its distance from now fits.
inline nanoseconds to_nanoseconds(std::chrono::steady_clock::time_point t) noexcept {
    const std::chrono::nanoseconds since = t.time_since_epoch();
    return since.count() > 0 ? since.count() : 0;
}

}  // namespace ums::os
