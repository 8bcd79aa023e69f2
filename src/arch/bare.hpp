// SPDX-License-Identifier: MIT
#pragma once

// arch/bare.hpp: what a kernel thread can do while another uses its thread-local memory.
//
// The kernel thread behind a worker (src/workers) sleeps while another one runs the worker with
// its TLS block. Up to that sleep, and after it until the worker is back, it must touch no
// thread-local variable: not errno, not a stack protector's canary, nothing that a sanitizer keeps
// per thread. So it runs functions that are not instrumented, makes its own system calls, past the
// table of os/system.hpp, and uses the compiler's atomics instead of base/atomic.hpp, whose
// functions may be instrumented. No other code does so.

#include <cstdint>

#include <linux/futex.h>
#include <sys/syscall.h>

#include "arch/sanitizer.hpp"

#define UMS_BARE                                                                       \
    __attribute__((noinline, no_stack_protector, no_sanitize("address", "undefined"))) \
    UMS_UNINSTRUMENTED

namespace ums::arch {

#if defined(__x86_64__)

UMS_ALWAYS_INLINE long bare_futex(const std::uint32_t* word, long operation,
                                  std::uint32_t value) noexcept {
    long result = SYS_futex;
    register long no_limit asm("r10") = 0;
    asm volatile("syscall"
                 : "+a"(result)
                 : "D"(word), "S"(operation), "d"(std::uint64_t{value}), "r"(no_limit)
                 : "rcx", "r11", "memory");
    return result;
}

// Sets the mask of all 64 signals.
UMS_ALWAYS_INLINE void bare_signal_mask(const std::uint64_t* mask) noexcept {
    long result = SYS_rt_sigprocmask;
    constexpr long set = 2;  // SIG_SETMASK
    register long bytes asm("r10") = sizeof *mask;
    asm volatile("syscall"
                 : "+a"(result)
                 : "D"(set), "S"(mask), "d"(0L), "r"(bytes)
                 : "rcx", "r11", "memory");
}

#else
#error "libums has no bare system call for this CPU yet"
#endif

UMS_ALWAYS_INLINE void bare_futex_wait(const std::uint32_t* word, std::uint32_t expected) noexcept {
    bare_futex(word, FUTEX_WAIT_PRIVATE, expected);
}
UMS_ALWAYS_INLINE void bare_futex_wake_all(const std::uint32_t* word) noexcept {
    bare_futex(word, FUTEX_WAKE_PRIVATE, 0x7fffffff);
}

}  // namespace ums::arch
