// SPDX-License-Identifier: MIT
//
// Why no worker is left parked. A worker that comes back stores "held", executes a full fence, and reads the control
// word: if it is zero it queues itself. A resume takes its suspension off the control word by a sequentially
// consistent read-modify-write, then reads the state: if it is "held" and nothing suspends the worker any more, it
// queues it. One of them sees the other's store; if both do, one wins the compare-and-swap from "held" to
// "queued". An end that is ordered is the same: either the worker sees `killed` and ends itself, or who
// ordered it sees "held" and sends the home to its end.
//
// The worker may be found on the list before its registers are saved. Until the home has seen them saved, and no longer
// touches the TLS block, the state is `locked`, and who executes it waits for that.

#include "ums/crossing.hpp"

#include "os/futex.hpp"
#include "os/system.hpp"
#include "ums/home.hpp"
#include "ums/mode.hpp"
#include "ums/worker_thread.hpp"

namespace ums::scheduling {

namespace {

// Futex mode: gives the scheduler its turn.
void give_back(scheduler_thread& s, arrival_reason why, void* argument) noexcept {
    s.reason = why;
    s.argument = argument;
    // sync(ums.handover): publishes why, and what the worker did.
    s.is_back.store(1, base::release);
    os::futex_wake(s.is_back.address());
}

}  // namespace

void yield_by_futex(context& self, void* argument) noexcept {
    give_back(*self.runner, arrival_reason::yield, argument);
    wait_for_order(self);
    come_out(self);
}

void go_home(context& self) noexcept {
    come_in(self);
    scheduler_thread& s = *self.runner;
    self.count.syscalls.add(1);
    if (s.pointer != nullptr) {
        switch_to_scheduler(self, s, arrival_reason::blocked);
        self.at_home = true;
        unmask_signals(*self.thread.get());
        return;
    }
    self.at_home = true;
    // relaxed: the worker itself is the next to change it.
    self.state.store(blocked, base::relaxed);
    give_back(s, arrival_reason::blocked, nullptr);
}

void queue_if_held(context& c) noexcept {
    std::uint32_t seen = c.state.load(base::relaxed);
    do {
        if ((seen & state_mask) != held) return;
        // sync(ums.state): sees the worker as it was when it was held, to queue it.
    } while (!c.state.compare_exchange(seen, (seen & ~std::uint32_t{state_mask}) | queued | listed,
                                       base::acq_rel, base::relaxed));
    completion_list* list = lists.find(c.list.get());
    // Gone, with the scheduler that used it: then the list that the worker was made for.
    if (list == nullptr || !push(*list, c)) (void)push(*c.thread.get()->list, c);
}

bool become_available(context& self) noexcept {
    base::full_fence();
    // sync(ums.control): sees what was done before the end was ordered; else the fence.
    const std::uint32_t control = self.control.load(base::acquire);
    if (control == 0) queue_if_held(self);
    if ((control & killed) == 0) return true;
    std::uint32_t seen = self.state.load(base::relaxed);
    // relaxed, here and above: the worker's own end.
    return (seen & state_mask) != held ||
           !self.state.compare_exchange(seen, blocked | (seen & locked), base::relaxed,
                                        base::relaxed);
}

void come_back(context& self) noexcept {
    come_back_inside(self);
    if (self.critical == 0) come_out(self);
}

void come_back_inside(context& self) noexcept {
    const bool in_user_mode = mode() == switch_mode::user;
    if (in_user_mode) mask_signals(*self.thread.get());
    // sync(ums.state): publishes what the worker did to a resume that queues it.
    self.state.store(in_user_mode ? held | locked : held, base::release);
    if (!become_available(self)) end_here(self);
    if (in_user_mode) {
        self.at_home = false;
        arch::happens_before(&self);
        arch::switch_context(self.registers, self.home_registers, nullptr, nullptr);
        arch::happens_after(&self);
    } else {
        wait_for_order(self);
        self.at_home = false;
    }
}

void end_here(context& self) noexcept {
    self.has_ended = true;
    worker_thread& t = *self.thread.get();
    if (mode() == switch_mode::futex) land_again(*t.start);
    arch::forget_frames();
    arch::switch_context(self.registers, self.home_registers, nullptr, nullptr);
    __builtin_unreachable();
}

}  // namespace ums::scheduling
