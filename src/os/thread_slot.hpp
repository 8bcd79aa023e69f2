// SPDX-License-Identifier: MIT
#pragma once

// os/thread_slot.hpp: the thread-local variable that fibers depend on: one pointer per kernel
// thread. (The library's other thread-locals belong to plain threads or to debugging, and no fiber
// keeps their addresses.)
//
// Compilers compute a thread-local's address once and reuse it across a call. After a switch the
// fiber may be on another kernel thread, and that address is the old thread's. So C++ code never
// names the slot: a volatile asm statement reads it relative to the thread register, and the
// compiler can neither keep the value nor move the statement past another volatile access. That
// makes it safe to inline, also by link-time optimisation, at the cost of one or two loads. Other
// CPUs get a noinline accessor, which costs a call more.

namespace ums::os {

#if defined(__x86_64__)

inline void* thread_slot() noexcept {
    void* value;
    // Initial-exec: one load of the offset and no call to the loader, in the shared library too.
    asm volatile(
        "movq ums_thread_slot@gottpoff(%%rip), %0\n\t"
        "movq %%fs:(%0), %0"
        : "=r"(value)
        :
        : "memory");
    return value;
}

#else

[[gnu::noinline]] void* thread_slot() noexcept;

#endif

[[gnu::noinline]] void set_thread_slot(void* value) noexcept;

// For os/no_stop.hpp, on threads whose slot is empty: a counter beside it.
[[gnu::noinline]] void count_plain_sections(unsigned by) noexcept;
[[gnu::noinline]] unsigned plain_sections() noexcept;

}  // namespace ums::os
