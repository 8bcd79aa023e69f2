// SPDX-License-Identifier: MIT
#pragma once

// scheduling/home.hpp: where the worker's own kernel thread sleeps.

#include "scheduling/context.hpp"
#include "scheduling/worker_thread.hpp"

namespace ums::scheduling {

// By the home: continues the worker when it is ordered to; returns when the worker has ended.
void home_loop(context& c) noexcept;

// Queues it if nothing suspends it. False: its end was ordered, and it is the worker that ends itself.
[[nodiscard]] bool become_available(context& self) noexcept;
void queue_if_held(context& c) noexcept;

// All signals but the C library's SIGSETXID.
void mask_signals(worker_thread& t) noexcept;
void unmask_signals(worker_thread& t) noexcept;

// The C library registers each kernel thread's rseq area, in the TLS block, with the kernel. A worker runs on others,
// whose areas are not its own: a restartable sequence would never be restarted, and the CPU number in it never
// change. Without registration the number is negative, and its users fall back to a system call.
// How many bytes were registered; 0: none.
unsigned unregister_rseq() noexcept;
void register_rseq(unsigned bytes) noexcept;

}  // namespace ums::scheduling
