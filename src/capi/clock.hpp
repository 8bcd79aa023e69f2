// SPDX-License-Identifier: MIT
#pragma once

// capi/clock.hpp: waits until a time of a clock of POSIX.

#include <cerrno>
#include <cstdint>
#include <ctime>

#include "base/assert.hpp"
#include "ums/ums.h"

namespace ums::capi {

inline bool is_time(const timespec* t) noexcept {
    return t->tv_nsec >= 0 && t->tv_nsec < 1'000'000'000;
}
inline bool is_clock(clockid_t clock) noexcept {
    return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC;
}

inline std::int64_t in_nanoseconds(const timespec& t) noexcept {
    std::int64_t ns = 0;
    if (__builtin_mul_overflow(std::int64_t{t.tv_sec}, 1'000'000'000, &ns) ||
        __builtin_add_overflow(ns, t.tv_nsec, &ns))
        return t.tv_sec < 0 ? 0 : UMS_NEVER;
    return ns;
}

inline std::int64_t now_by(clockid_t clock) noexcept {
    timespec t;
    ::clock_gettime(clock, &t);
    return in_nanoseconds(t);
}

inline bool has_passed(clockid_t clock, const timespec& limit) noexcept {
    return now_by(clock) >= in_nanoseconds(limit);
}

// As far from now as `limit` is on its clock.
inline std::int64_t deadline_of(clockid_t clock, const timespec& limit) noexcept {
    UMS_DEBUG_ASSERT(is_clock(clock) && is_time(&limit), "a time was used before it was checked");
    const std::int64_t at = in_nanoseconds(limit);
    if (clock == CLOCK_MONOTONIC || at == UMS_NEVER) return at;
    const std::int64_t now = now_by(clock);
    return at > now ? ums_deadline_after(at - now) : 0;
}

// Calls wait(deadline), and again if it returned early because the clock was set back. Returns a
// negative error number on failure.
template <class Wait>
int wait_by(clockid_t clock, const timespec* limit, Wait wait) {
    if (!is_clock(clock) || !is_time(limit)) return -EINVAL;
    for (;;) {
        const int result = wait(deadline_of(clock, *limit));
        if (result != -ETIMEDOUT || has_passed(clock, *limit)) return result;
    }
}

}  // namespace ums::capi
