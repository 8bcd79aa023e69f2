// SPDX-License-Identifier: MIT
#pragma once

// base/lock.hpp: a lock in one word: 0 free, 1 held, 2 held and a thread may wait.
//
// A waiter sets 2 before it sleeps and takes the lock with 2, so the release after a wait wakes the
// next waiter and none is forgotten. The word may be gone as soon as it is free.
//
// The holder must not be stopped, suspended or terminated: hold the lock in critical regions only.

#include <cstdint>

#include "base/atomic.hpp"
#include "base/check.hpp"
#include "base/futex.hpp"

namespace ums::compat {

inline void lock_word(std::uint32_t& at) noexcept {
    const std::atomic_ref<std::uint32_t> word{at};
    for (int i = 0; i < 100; ++i) {
        std::uint32_t expected = 0;
        // sync(compat.lock): sees what the last holder wrote before its release.
        if (word.compare_exchange_strong(expected, 1, acquire, relaxed)) return;
        spin_pause();
    }
    // sync(compat.lock): as above.
    while (word.exchange(2, acquire) != 0) futex_wait(&at, 2);
}

inline void unlock_word(std::uint32_t& at) noexcept {
    // sync(compat.lock): publishes the section to the next holder.
    const std::uint32_t was = std::atomic_ref<std::uint32_t>{at}.exchange(0, release);
    UMS_DEBUG_CHECK(was != 0, "a lock was released that nobody held");
    if (was == 2) futex_wake(&at);
}

}  // namespace ums::compat
