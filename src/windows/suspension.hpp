// SPDX-License-Identifier: MIT
#pragma once

// windows/suspension.hpp: stopping and ending another kernel thread where it is.
//
// A signal reaches the thread; its handler waits on a futex until the count of suspensions is zero, or leaves the
// thread for ever. In an uninterrupted section the handler only takes a note, and the end of the
// section does the rest. Not for workers, which their scheduler stops.

#include <cstdint>
#include <pthread.h>

#include "base/atomic.hpp"

namespace ums::windows {

// What one thread's handler looks at. Written by others with the dispatcher's lock held.
struct suspension {
    base::atomic<std::uint32_t> count{0};
    base::atomic<std::uint32_t> is_stopped{0};
    base::atomic<std::uint32_t> is_condemned{0};
};

// The calling thread's, from now on; null: none.
void set_suspension(suspension* own) noexcept;

// Stops or leaves as the caller's suspension says. Async-signal-safe.
void obey_suspension() noexcept;

// Makes the thread look at its suspension. False: there is no free signal.
bool interrupt(pthread_t thread) noexcept;

// Waits until the thread, interrupted before, has stopped. Not under the lock.
void wait_until_stopped(suspension& of) noexcept;

// After the count became zero.
void let_go(suspension& of) noexcept;

}  // namespace ums::windows
