// SPDX-License-Identifier: MIT
#pragma once

// os/thread_cpu.hpp: the CPU on which another kernel thread runs.
//
// The kernel writes a thread's CPU into that thread's rseq area whenever it returns to user mode on
// another one. So anybody who knows where the area lies learns the CPU for a load, and the thread pays nothing. The
// area belongs to the kernel thread: a UMS worker's own thread pointer does not matter.
//
// The area is the C library's (2.35 and later), in the thread's TLS block, and goes with the thread.
// Readers count themselves, and end() waits until none is left.
// A thread whose TLS block others use meanwhile has no such area. It registers one of its own.

#include <cstdint>

#include "base/atomic.hpp"

namespace ums::os {

class thread_cpu {
public:
    // By the thread: from now on get() is about it.
    void begin() noexcept;
    // The same for a thread without an area. Where the kernel refuses it one, get() is -1.
    void begin_own() noexcept;
    // By the thread, before it ends, if it has called either.
    void end() noexcept;

    // The CPU on which it runs or ran last; -1: unknown.
    [[nodiscard]] int get() noexcept {
        readers_.fetch_add(1, base::seq_cst);
        // seq_cst, all four: the reader counts itself, then reads the address; end() takes the address back, then reads the
        // count. One of them sees the other.
        const std::uint32_t* at = at_.load(base::seq_cst);
        // relaxed: a hint, which the kernel may change at any time.
        const int cpu = at != nullptr ? static_cast<int>(__atomic_load_n(at, __ATOMIC_RELAXED)) : -1;
        readers_.fetch_sub(1, base::seq_cst);  // Release: the area has been read.
        return cpu < 0 ? -1 : cpu;             // Negative: not registered with the kernel.
    }

    // Of the calling thread; -1: unknown.
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
