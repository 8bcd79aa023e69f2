// SPDX-License-Identifier: MIT
#pragma once

// os/thread/thread_cpu.hpp: the CPU on which another kernel thread runs.
//
// The kernel writes a thread's CPU into that thread's rseq area whenever it returns to user mode on
// another one. So any thread that knows where the area lies learns the CPU by a load, and the other
// thread pays nothing. The area belongs to the kernel thread: a UMS worker's own thread pointer
// does not matter.
//
// The area is the C library's (2.35 and later). It lies in the thread's TLS block, and disappears
// with the thread. Readers count themselves, and end() waits until there are none. A thread whose
// TLS block other threads use meanwhile has no such area; it registers one of its own.

#include <cstdint>

#include "base/atomic.hpp"

namespace ums::os {

class thread_cpu {
public:
    // Called by the thread: from now on get() tells its CPU.
    void begin() noexcept;
    // The same for a thread without an area. If the kernel refuses it one, get() is -1.
    void begin_own() noexcept;
    // Called by the thread, before it ends, if it has called either.
    void end() noexcept;

    // The CPU on which the thread runs or ran last; -1: unknown.
    [[nodiscard]] int get() noexcept {
        readers_.fetch_add(1, base::seq_cst);
        // seq_cst, all four: a reader counts itself, then reads the address; end() takes the
        // address back, then reads the count. One of them sees the other.
        const std::uint32_t* at = at_.load(base::seq_cst);
        // relaxed: a hint, which the kernel may change at any time.
        const int cpu =
            at != nullptr ? static_cast<int>(__atomic_load_n(at, __ATOMIC_RELAXED)) : -1;
        readers_.fetch_sub(1, base::seq_cst);  // Release: the area has been read.
        return cpu < 0 ? -1 : cpu;  // A negative number means: not registered with the kernel.
    }

    // The calling thread's CPU; -1: unknown.
    [[nodiscard]] static int here() noexcept;

private:
    // The kernel's struct rseq, first version: the second word is the CPU.
    struct alignas(32) area {
        std::uint32_t words[8];
    };

    base::atomic<const std::uint32_t*> at_;
    base::atomic<std::uint32_t> readers_;
    area own_{};
    bool has_own_ = false;
};

}  // namespace ums::os
