// SPDX-License-Identifier: MIT
#pragma once

// os/thread_slot.hpp: the thread-local variable that fibers depend on: one pointer per kernel thread.
// (The others belong to plain threads or to debugging, and no fiber keeps their address.)
//
// Compilers compute a thread-local's address once and reuse it across a call. After a switch the
// fiber may be on another kernel thread, and that address is the old thread's. So the slot is never
// named in C++: it is read by a volatile asm statement relative to the thread register, which the
// compiler can neither keep nor move past another volatile access. That makes it safe to inline, also by
// link-time optimisation, at the cost of one or two loads; a noinline accessor costs a call more and is
// what other CPUs get.

namespace ums::os {

#if defined(__x86_64__)

inline void* thread_slot() noexcept {
    void* value;
    // Initial-exec: one load of the offset, no call to the loader, in the shared library too.
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
