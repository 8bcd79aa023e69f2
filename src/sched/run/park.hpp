// SPDX-License-Identifier: MIT
#pragma once

// sched/run/park.hpp: the one way a fiber, or a plain kernel thread, stops.
//
// internal: for the library's own waits, ended by wake(). One rule makes it exact: a waiter that
//           publishes itself to a waker parks until that waker's wake() has come, once for each (a
//           timed wait that gives up withdraws its publication under the waker's lock, or parks
//           again if it is too late). So no wake() is ever stale, a waker may touch the waiter
//           until its wake() returns, and an internal park never returns without a reason.
// user:     the public this_fiber::park(), ended by unpark().
//
// Blocking: parks the fiber, never its processor; a plain thread waits on a futex.
// Cost:     without a deadline, one read-modify-write and a switch. With a deadline, also two short
//           lock sections and a heap operation.

#include <stop_token>

#include "os/clock.hpp"
#include "sched/fiber/fiber.hpp"
#include "sched/fiber/parkable.hpp"
#include "sched/run/here.hpp"

namespace ums::sched {

enum class park_kind { internal, user };

// A plain kernel thread's own parkable, which lives as long as the thread.
[[gnu::noinline]] parkable& plain_thread() noexcept;

// Called around the wait of a plain thread in the kernel, because the scheduler of plain threads
// (src/workers) wants to know. Null if there is none. Set once, before the threads that it
// concerns exist.
struct plain_wait {
    void (*begins)() noexcept;
    void (*has_ended)() noexcept;
};
extern base::atomic<const plain_wait*> on_plain_wait;

// The caller: the calling fiber, or the calling plain thread.
inline parkable& this_parkable() noexcept {
    const here at;
    return at.self != nullptr ? *at.self : plain_thread();
}

void park(park_kind kind) noexcept;

// Call this before a wait for fibers that the caller may just have made: they come next, so that a
// tree of fibers is walked depth first (sched/queue/run_queue.hpp).
void call_new() noexcept;

// Whether it may pay to look again for some microseconds rather than to park: the caller's
// processor would have nothing else to run, and another of the cluster is running, which may end
// the wait meanwhile. A hint. Always true for a plain thread.
[[nodiscard]] bool may_look_again() noexcept;

// Takes a parked fiber aside, so that its stack holds still: a waker leaves a token or a mark
// instead. Returns the bits to give to park_again(), or 0 if the fiber is not parked.
[[nodiscard]] std::uint32_t take_aside(fiber& f) noexcept;
// Parks it again, or makes it ready if a wake-up came meanwhile. Outside any processor's ownership.
void park_again(fiber& f, std::uint32_t bits) noexcept;

// Also returns once `until` has passed, or a stop was requested. Exactly one of wake-up, deadline
// and stop ends the wait. A wake-up takes precedence over a deadline that passed before the park
// was complete.
parkable::reason park(park_kind kind, os::nanoseconds until, const std::stop_token* stop) noexcept;

// A cheaper park for a waiter that is published under a lock (an os::lock_word, held by the caller)
// and that only one waker under that lock can end: no deadline, no stop. The lock is released only
// when the registers are saved, so a later holder that finds the waiter owns the fiber. The fiber
// continues by resume_held(), and neither side needs a read-modify-write of the fiber's word.
// unpark() is remembered as usual.
//
// Returns false, and nothing has happened, if it is not possible now (the caller is a plain thread;
// or no other fiber is at hand, so that the lock would be held for long). Then park as usual. No
// code that can take a primitive's lock runs while the lock is held. `next_word` is what the
// release makes of the lock (os/lock.hpp).
[[nodiscard]] bool park_holding(std::uint32_t& lock, std::uint32_t next_word) noexcept;

// Orders the caller after everything that ran on its processor before it, for ThreadSanitizer's
// no_sync mode: the destructor of a std::stop_callback does not wait for a callback that ran on
// this kernel thread.
void come_after_processor() noexcept;

}  // namespace ums::sched
