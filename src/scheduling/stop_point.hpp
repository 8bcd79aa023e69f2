// SPDX-License-Identifier: MIT
#pragma once

// scheduling/stop_point.hpp: where a worker may be stopped by a signal.
//
// A stopped worker waits for a scheduler, and that may need what the worker holds: the heap's lock, the loader's, a
// stream's. Nobody can ask for those, so a worker is not stopped while a function of the C library, the loader, the
// C++ runtime, libums or whatever object defines malloc() has a frame on its stack. What the program's own code
// locks is the program's business: see ums_critical_enter().
//
// Nor is it stopped while it comes in or goes out (UMS_CROSSING), also where libums is linked
// statically: it would resume on another seat, with the first one's address in a register, and write
// into that. By then the first seat may carry another scheduler, or be gone.
//
// First every word of the stack is taken for a return address: if none leads there, no frame does. If one does, it may
// be a left-over, and the frames are counted one by one; only if that comes to the worker's first frame without
// meeting one is the worker stopped.

// For the definition of every function that reads a worker's seat while the worker is outside. Not for
// one that calls the program's code: its frame would keep the worker from being stopped there.
#define UMS_CROSSING __attribute__((noinline, section("ums_crossing")))

namespace ums::scheduling {

struct worker_thread;

// Notes where those objects lie. Not in a signal handler; one call at a time. Meanwhile no worker is stopped.
void learn_where_not_to_stop();

// In the handler of the signal; `context`: ucontext_t. The worker is the caller.
[[nodiscard]] bool is_stop_point(const worker_thread& t, const void* context) noexcept;

}  // namespace ums::scheduling
