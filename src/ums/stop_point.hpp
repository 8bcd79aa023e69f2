// SPDX-License-Identifier: MIT
#pragma once

// ums/stop_point.hpp: where a worker may be stopped by a signal.
//
// A stopped worker waits for a scheduler, and that may need what the worker holds: the heap's lock, the loader's, a
// stream's. Nobody can ask for those, so a worker is not stopped while a function of the C library, the loader, the
// C++ runtime, libums or whatever object defines malloc() has a frame on its stack. What the program's own code
// locks is the program's business: see ums_critical_enter().
//
// First every word of the stack is taken for a return address: if none leads there, no frame does. If one does, it may
// be a left-over, and the frames are counted one by one; only if that comes to the worker's first frame without
// meeting one is the worker stopped.

namespace ums::scheduling {

struct worker_thread;

// Notes where those objects lie. Not in a signal handler; one call at a time. Meanwhile no worker is stopped.
void learn_where_not_to_stop();

// In the handler of the signal; `context`: ucontext_t. The worker is the caller.
[[nodiscard]] bool is_stop_point(const worker_thread& t, const void* context) noexcept;

}  // namespace ums::scheduling
