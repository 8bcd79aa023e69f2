// SPDX-License-Identifier: MIT
#pragma once

// workers/worker/home.hpp: where the worker's own kernel thread sleeps.

#include "workers/worker/context.hpp"
#include "workers/worker/worker_thread.hpp"

namespace ums::scheduling {

// Called by the home: continues the worker when ordered to; returns when the worker has ended.
void home_loop(context& c) noexcept;

// Queues the worker if nothing suspends it. Returns false if its end was ordered and the worker
// itself must end.
[[nodiscard]] bool become_available(context& self) noexcept;
void queue_if_held(context& c) noexcept;

// Blocks all signals but the C library's SIGSETXID.
void mask_signals(worker_thread& t) noexcept;
void unmask_signals(worker_thread& t) noexcept;

// The C library registers each kernel thread's rseq area, in the TLS block, with the kernel. A
// worker runs on kernel threads whose areas are not its own: a restartable sequence would never be
// restarted, and the CPU number in the worker's area would never change. Without registration that
// number is negative, and code that uses it falls back to a system call. Returns how many bytes
// were registered; 0: none.
unsigned unregister_rseq() noexcept;
void register_rseq(unsigned bytes) noexcept;

}  // namespace ums::scheduling
