// SPDX-License-Identifier: MIT
#pragma once

// sched/carrier.hpp: a kernel thread of the runtime that can run fibers.
//
// It holds at most one processor and runs at most one fiber. Its own stack runs the loop that looks for
// work when a fiber stops and nothing else is ready; between two ready fibers the switch is direct.
// Which fiber runs belongs to the carrier and not to the processor, because a carrier that blocks in
// the kernel keeps its fiber while its processor goes on elsewhere.

#include <thread>

#include "arch/context.hpp"
#include "arch/exception_state.hpp"
#include "arch/sanitizer.hpp"
#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "os/thread_slot.hpp"

namespace ums::sched {

struct fiber;
class processor;

struct alignas(base::cache_line) carrier {
    // Hot, owned by the thread itself:
    base::owned<processor*> proc;
    base::owned<fiber*> running;  // Null: the loop.
    // Set once at the thread's start:
    int* errno_at = nullptr;
    arch::exception_state* exceptions = nullptr;
    arch::context loop{};
    arch::stack_shadow loop_shadow;
    arch::race_context race;

    bool made_by_carrier = false;
    std::thread thread;

    // Starts the kernel thread, which holds `p` until it retires. Throws std::system_error.
    static carrier* start(processor& p);
    // Waits until the thread has ended, and frees it.
    static void join(carrier* c) noexcept;

private:
    void run() noexcept;
    void run_loop() noexcept;
};

// The calling thread's, or null on a thread that is none. Never cached across a switch.
inline carrier* this_carrier() noexcept { return static_cast<carrier*>(os::thread_slot()); }

}  // namespace ums::sched
