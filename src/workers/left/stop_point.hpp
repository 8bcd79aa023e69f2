// SPDX-License-Identifier: MIT
#pragma once

// workers/left/stop_point.hpp: where a signal may stop a worker.
//
// A stopped worker waits for a scheduler, which may need what the worker holds: the heap's lock,
// the loader's, a stream's. No call says who holds those. So a worker is not stopped while its
// stack has a frame of a function of the C library, the loader, the C++ runtime, libums, or
// whatever object defines malloc(). What the program's own code locks is the program's business:
// see ums_critical_enter().
//
// Nor is a worker stopped while it comes in or goes out (UMS_CROSSING), also where libums is linked
// statically: it would resume on another seat, with the first one's address in a register, and
// write into the first. By then that one may carry another scheduler, or be gone.
//
// The check first takes every word of the stack for a return address: if none leads into forbidden
// code, no frame does. If one does, it may be a left-over, and the check counts the frames one by
// one; the worker is stopped only if that reaches the worker's first frame without meeting a
// forbidden one.

// Marks the definition of every function that reads a worker's seat while the worker is outside. Do
// not mark one that calls the program's code: its frame would keep the worker from being stopped
// there.
#define UMS_CROSSING __attribute__((noinline, section("ums_crossing")))

namespace ums::scheduling {

struct worker_thread;

// Notes where those objects lie. Not in a signal handler, and only one call at a time. Meanwhile no
// worker is stopped.
void learn_where_not_to_stop();

// For the handler of the signal; `context` is its ucontext_t. The caller is the worker.
[[nodiscard]] bool is_stop_point(const worker_thread& t, const void* context) noexcept;

}  // namespace ums::scheduling
