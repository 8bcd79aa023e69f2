// SPDX-License-Identifier: MIT
#pragma once

// os/thread/kernel_thread.hpp: a kernel thread of the runtime, with a small stack and a guard below
// it.
//
// std::thread allocates in the thread that starts it and gives the new one the process's default
// stack, usually 8 MiB. A runtime with thousands of carriers wants neither. The stack is mapped
// here and not by the C library, which would keep some of the stacks after their threads are gone.
//
// Lifetime:  joined before it is started again or destroyed.
// Errors:    start() returns an error number, usually EAGAIN or ENOMEM.
// Memory:    stack_bytes of address space, of which the kernel provides what is touched, plus the
//            thread-local variables that the program had at its start, plus a guard page.

#include <cstddef>
#include <cstdint>
#include <pthread.h>

#include "base/assert.hpp"
#include "base/atomic.hpp"
#include "os/clock.hpp"

namespace ums::os {

class kernel_thread {
public:
    // Sanitizers' frames are larger, and their runtimes keep their own data there.
#if defined(UMS_ASAN) || defined(UMS_TSAN)
    static constexpr std::size_t stack_bytes = 2 * 1024 * 1024;
#else
    static constexpr std::size_t stack_bytes = 256 * 1024;
#endif

    kernel_thread() noexcept = default;
    ~kernel_thread() { UMS_ASSERT(!is_started(), "a kernel thread was destroyed and not joined"); }
    kernel_thread(const kernel_thread&) = delete;
    kernel_thread& operator=(const kernel_thread&) = delete;

    // Calls body(argument) on a new thread. Returns 0, or the error number of pthread_create(3).
    [[nodiscard]] int start(void* (*body)(void*), void* argument) noexcept;
    // What a line about that error says at its end.
    [[nodiscard]] static const char* advice(int error) noexcept;
    // Waits for the end of the thread. May be called by any thread that knows that this one was or
    // is being started, even by a start() that has not returned yet.
    void join() noexcept;
    // Does the same, but waits at most that long. Returns false if the thread has not ended.
    [[nodiscard]] bool join_within(nanoseconds limit) noexcept;

    [[nodiscard]] bool is_started() const noexcept {
        // relaxed: a hint, or the caller is ordered after start().
        return is_started_.load(base::relaxed) != 0;
    }

private:
    void joined() noexcept;

    pthread_t handle_{};
    char* stack_ = nullptr;  // Includes its guard, the lowest page.
    std::size_t bytes_ = 0;
    // 1 from the end of start() until the thread is joined.
    base::atomic<std::uint32_t> is_started_;
};

}  // namespace ums::os
