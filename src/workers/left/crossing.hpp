// SPDX-License-Identifier: MIT
#pragma once

// workers/left/crossing.hpp: how a worker leaves its scheduler and comes back. The worker itself
// calls all of these.

#include "arch/x86_64/thread_pointer.hpp"
#include "workers/scheduler/scheduler_thread.hpp"
#include "workers/scheduler/seat.hpp"
#include "workers/worker/context.hpp"

namespace ums::scheduling {

// The scheduler continues on this kernel thread; returns when the worker is continued.
UMS_ALWAYS_INLINE void switch_to_scheduler(context& self, scheduler_thread& s,
                                           arrival_reason why) noexcept {
    s.reason = why;
    // Read before the annotation: what comes after it is, for ThreadSanitizer, in a race with the
    // next use of the memory that `s` is in, once the scheduler has left.
    void* const pointer = s.pointer;
    arch::happens_before(&self);
    arch::happens_before(&s);
    arch::switch_identity(self.registers, s.base.at, pointer, &s.base);
    arch::happens_after(&self);
}

// Returns at the next execution. Requires: no critical region, not at home. It is inline down to
// the switch: the scheduler's calls since then have filled the return predictor, so each return on
// the way out is predicted wrong.
UMS_ALWAYS_INLINE void yield(context& self, void* argument) noexcept {
    come_in(self);
    scheduler_thread& s = *self.runner;
    s.argument = argument;
    switch_to_scheduler(self, s, arrival_reason::yield);
    come_out(self);
}

// Gives the scheduler its kernel thread back (UMS_REASON_BLOCKED, 1) and continues at home.
void go_home(context& self) noexcept;

// Queues the worker, unless it is suspended, and waits to be executed. Requires: at home. Does not
// return if the worker was terminated meanwhile.
void come_back(context& self) noexcept;

// Ends the worker at home: its frames are discarded. Requires: at home.
[[noreturn]] void end_here(context& self) noexcept;

}  // namespace ums::scheduling
