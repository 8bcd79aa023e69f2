// SPDX-License-Identifier: MIT
#pragma once

// windows/word.hpp: waiting on a word of a type that lies in the program.

#include <atomic>
#include <cstdint>

#include "base/atomic.hpp"
#include "base/futex.hpp"
#include "windows/guard.hpp"
#include "windows/suspension.hpp"
#include "windows/thread.hpp"

namespace ums::windows {

using word = std::atomic_ref<std::uint32_t>;

// Waits while the word has that value, until `limit`, and tells a worker's scheduler about the
// wait. May return early. Returns false if the limit has passed.
inline bool wait_while(const std::uint32_t& at, std::uint32_t value,
                       compat::nanoseconds limit = compat::never) noexcept {
    // It is not cleared afterwards: a thread that is terminated after the wait has not acted on its
    // wake-up either.
    thread::current().waited_on = &at;
    const blocking wait;
    const bool in_time = compat::futex_wait(&at, value, limit);
    obey_late_signals();
    return in_time;
}

inline void wake_one(const std::uint32_t& at) noexcept { compat::futex_wake(&at, 1); }
inline void wake_all(const std::uint32_t& at) noexcept { compat::futex_wake(&at, 0x7FFFFFFF); }

}  // namespace ums::windows
