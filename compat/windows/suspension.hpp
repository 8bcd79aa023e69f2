// SPDX-License-Identifier: MIT
#pragma once

// windows/suspension.hpp: stopping and ending another kernel thread wherever it is.
//
// A signal reaches the thread. Its handler waits on a futex until the count of suspensions is zero,
// or ends the thread. In an uninterrupted section the handler only makes a note, and the end of the
// section does the rest. This is not for workers, which their scheduler stops.
//
// A thread that is ended runs no destructor, so the C library must not use its stack and
// thread-locals for a new thread: they are lost, as on Windows. Therefore it is not joined; instead
// the kernel clears a word of ours when the thread is gone.

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

// What one thread's handler looks at. Other threads write it with the dispatcher's lock held.
struct suspension {
    std::atomic<std::uint32_t> count{0};
    std::atomic<std::uint32_t> is_stopped{0};
    std::atomic<std::uint32_t> is_condemned{0};
    std::atomic<std::uint32_t> is_there{
        1};  // The kernel clears it when a condemned thread is gone.
};

// Sets the calling thread's suspension; null: it has none.
void set_suspension(suspension* own) noexcept;

// Stops or ends the thread, as the caller's suspension says. Async-signal-safe.
void obey_suspension() noexcept;

// Call after a wait in the kernel. ThreadSanitizer keeps a signal back until the thread calls a
// function that it knows, and our waits are not among them. Does nothing in other builds.
inline void obey_late_signals() noexcept {
#if defined(UMS_TSAN)
    obey_suspension();
#endif
}

// Makes the thread look at its suspension. False: there is no free signal.
bool interrupt(pthread_t thread) noexcept;

// Waits until the thread, which was interrupted before, has stopped. Not under the lock.
void wait_until_stopped(suspension& of) noexcept;

// Waits until the thread, which was condemned and interrupted, is gone or has ended by itself. Not
// under the lock.
void wait_until_gone(suspension& of) noexcept;

// Resumes the thread, after the count has become zero.
void let_go(suspension& of) noexcept;

}  // namespace ums::windows
