// SPDX-License-Identifier: MIT
#pragma once

// os/futex.hpp: waiting until a 32-bit word changes, for kernel threads.

#include <cerrno>
#include <cstdint>

#include "base/atomic.hpp"
#include "os/clock.hpp"
#include "os/system.hpp"

namespace ums::os {

// Waits while word == expected, until `limit`. May return early for no reason (a signal, a stray
// wake-up), so callers test their condition again. Returns false once `limit` has passed.
inline bool futex_wait(const void* word, std::uint32_t expected,
                       nanoseconds limit = never) noexcept {
    if (limit == never) {
        system.futex_wait(word, expected, nullptr);
        return true;
    }
    if (limit < 0) limit = 0;
    const timespec at{limit / 1'000'000'000, limit % 1'000'000'000};
    return system.futex_wait(word, expected, &at) != -ETIMEDOUT;
}
inline bool futex_wait(const base::atomic<std::uint32_t>& word, std::uint32_t expected,
                       nanoseconds limit = never) noexcept {
    return futex_wait(word.address(), expected, limit);
}

// The word may already be gone when this runs: the kernel compares only addresses.
inline void futex_wake(const void* word, int waiters = 1) noexcept {
    system.futex_wake(word, waiters);
}

}  // namespace ums::os
