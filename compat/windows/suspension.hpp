// SPDX-License-Identifier: MIT
#pragma once

// windows/suspension.hpp: stopping and ending another kernel thread where it is.
//
// A signal reaches the thread; its handler waits on a futex until the count of suspensions is zero, or leaves the
// thread for ever. In an uninterrupted section the handler only takes a note, and the end of the
// section does the rest. Not for workers, which their scheduler stops.
//
// A thread that leaves runs no destructor, so the C library must not use its stack and thread-locals for a new
// thread: they are lost, as they are on Windows. Therefore it is not joined; the kernel itself clears a word of
// ours when the thread is gone.

#include <atomic>
#include <cstdint>
#include <pthread.h>

#include "base/atomic.hpp"

#if defined(__SANITIZE_THREAD__)
#define UMS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UMS_TSAN 1
#endif
#endif

namespace ums::windows {

// What one thread's handler looks at. Written by others with the dispatcher's lock held.
struct suspension {
    std::atomic<std::uint32_t> count{0};
    std::atomic<std::uint32_t> is_stopped{0};
    std::atomic<std::uint32_t> is_condemned{0};
    std::atomic<std::uint32_t> is_there{
        1};  // The kernel clears it when a condemned thread is gone.
};

// The calling thread's, from now on; null: none.
void set_suspension(suspension* own) noexcept;

// Stops or leaves as the caller's suspension says. Async-signal-safe.
void obey_suspension() noexcept;

// After a wait in the kernel: ThreadSanitizer keeps a signal back until the thread calls something it knows, and
// a wait of ours is not. Nothing in other builds.
inline void obey_late_signals() noexcept {
#if defined(UMS_TSAN)
    obey_suspension();
#endif
}

// Makes the thread look at its suspension. False: there is no free signal.
bool interrupt(pthread_t thread) noexcept;

// Waits until the thread, interrupted before, has stopped. Not under the lock.
void wait_until_stopped(suspension& of) noexcept;

// Waits until the thread, condemned and interrupted, is gone or has ended by itself. Not under the lock.
void wait_until_gone(suspension& of) noexcept;

// After the count became zero.
void let_go(suspension& of) noexcept;

}  // namespace ums::windows
