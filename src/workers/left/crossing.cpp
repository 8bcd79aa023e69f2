// SPDX-License-Identifier: MIT
//
// Why no worker is left parked: a worker that comes back stores "held", executes a full fence, and
// reads the control word; if that is zero, the worker queues itself. A resume takes its suspension
// off the control word by a sequentially consistent read-modify-write, then reads the state; if
// that is "held" and nothing suspends the worker any more, the resume queues it. One of them sees
// the other's store; if both do, one wins the compare-and-swap from "held" to "queued". An ordered
// end works the same way: either the worker sees `killed` and ends itself, or the caller that
// ordered the end sees "held" and sends the home to its end.
//
// A scheduler may find the worker on the list before the worker's registers are saved. The state is
// `locked` until the home has seen them saved and no longer touches the TLS block, and a scheduler
// that executes the worker waits for that.

#include "workers/left/crossing.hpp"

#include "workers/left/stop_point.hpp"
#include "workers/worker/home.hpp"
#include "workers/worker/worker_thread.hpp"

namespace ums::scheduling {

UMS_CROSSING void go_home(context& self) noexcept {
    UMS_ASSERT(!self.at_home, "a worker that is at home cannot go there");
    UMS_ASSERT(self.state.look_for_state() == running || self.state.look_for_state() == blocked,
               "a worker that is not executed runs");
    come_in(self);
    scheduler_thread& s = *self.runner;
    self.count.syscalls.add(1);
    switch_to_scheduler(self, s, arrival_reason::blocked);
    self.at_home = true;
    unmask_signals(*self.thread.get());
}

void queue_if_held(context& c) noexcept {
    std::uint32_t seen = c.state.look();
    do {
        if ((seen & state_mask) != held) return;
        // sync(ums.state): sees what the worker did before it was held, and passes it on.
    } while (!c.state.change(seen, (seen & ~std::uint32_t{state_mask}) | queued | listed,
                             base::acq_rel));
    completion_list* list = lists.find(c.list.get());
    // That list is gone, with the scheduler that used it: take the one that the worker was made
    // for.
    if (list == nullptr || !push(*list, c)) (void)push(*c.thread.get()->list, c);
}

bool become_available(context& self) noexcept {
    base::full_fence();
    // sync(ums.control): sees what was done before the end was ordered; otherwise the fence orders.
    const std::uint32_t control = self.control.load(base::acquire);
    if (control == 0) queue_if_held(self);
    if ((control & killed) == 0) return true;
    std::uint32_t seen = self.state.look();
    // relaxed, here and above: this is the worker's own end.
    return (seen & state_mask) != held ||
           !self.state.change(seen, blocked | (seen & locked), base::relaxed);
}

UMS_CROSSING void come_back(context& self) noexcept {
    UMS_ASSERT(self.at_home, "a worker comes back from home only");
    mask_signals(*self.thread.get());
    // sync(ums.state): publishes what the worker did to a resume that queues it.
    self.state.set(held | locked, base::release);
    if (!become_available(self)) end_here(self);
    self.at_home = false;
    arch::happens_before(&self);
    arch::switch_context(self.registers, self.home_registers, nullptr, nullptr);
    arch::happens_after(&self);
    if (self.critical == 0) come_out(self);
}

void end_here(context& self) noexcept {
    UMS_ASSERT(self.at_home, "a worker ends at home only");
    UMS_ASSERT(self.state.look_for_state() == blocked, "a worker that schedulers may have ends");
    self.has_ended = true;
    arch::forget_frames();
    arch::switch_context(self.registers, self.home_registers, nullptr, nullptr);
    __builtin_unreachable();
}

}  // namespace ums::scheduling
