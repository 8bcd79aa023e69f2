// SPDX-License-Identifier: MIT
#pragma once

// base/futex.hpp: the clock, and waiting until a 32-bit word changes. None of this changes errno.

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ums::compat {

// CLOCK_MONOTONIC in nanoseconds.
using nanoseconds = long;

inline constexpr nanoseconds never = __LONG_MAX__;

inline nanoseconds now() noexcept {
    timespec t;
    ::clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1'000'000'000L + t.tv_nsec;
}

// Waits while *word == expected, until `limit`. May return early for no reason (a signal, a stray
// wake-up), so callers test their condition again. Returns false once `limit` has passed.
inline bool futex_wait(const void* word, std::uint32_t expected,
                       nanoseconds limit = never) noexcept {
    const int kept = errno;
    const timespec at{limit / 1'000'000'000, limit % 1'000'000'000};
    const bool is_late =
        ::syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, expected,
                  limit == never ? nullptr : &at, nullptr, FUTEX_BITSET_MATCH_ANY) != 0 &&
        errno == ETIMEDOUT;
    errno = kept;
    return !is_late;
}

// The word may already be gone when this runs: the kernel compares only addresses.
inline void futex_wake(const void* word, int waiters = 1) noexcept {
    const int kept = errno;
    ::syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, waiters);
    errno = kept;
}

}  // namespace ums::compat
