// SPDX-License-Identifier: MIT
#pragma once

// ums/seat.hpp: a kernel thread that can carry a scheduler, and how a worker's code is told from ours (user mode).
//
// A scheduler sits on its own kernel thread. When a worker blocks there in a call that nobody announced
// (src/block), the scheduler moves to a spare one (ums/spares.hpp) and leaves the worker behind, a stray. A stray
// runs on when its call returns, until it is stopped or calls us: then it is queued like any worker that comes
// back, and the kernel thread is free: a spare goes back to the others, the scheduler's own waits for the scheduler,
// which moves back at its next landing.
//
// `own` (sched/ownership.hpp) says where the kernel thread is: inside, that is in the scheduler's code or in ours; or
// outside, in a worker's. Only outside may somebody claim it and take the scheduler away; from then on it is vacant,
// and the worker finds out when it wants to come in. A worker goes outside on its own stack, after the switch,
// and comes in before the next one: nobody ever claims a kernel thread that is half way between two.
//
// In futex mode there are no seats: each worker is its own kernel thread, its scheduler waits beside it and looks at it
// now and then. There the flag `locked` of the state says "inside", and who wants to come in and finds `blocked`
// is a stray.

#include "arch/context.hpp"
#include "arch/sanitizer.hpp"
#include "block/detector.hpp"
#include "os/user_interrupt.hpp"
#include "sched/ownership.hpp"
#include "ums/context.hpp"

namespace ums::scheduling {

struct alignas(64) seat {
    sched::ownership own;
    // Owned by who is inside, or has a claim:
    base::owned<std::uint64_t> turns{0};  // Executions of workers: what a detector compares.
    base::atomic<scheduler_thread*> rider{nullptr};
    // Set before it carries anybody; null: nobody watches it.
    block::detector* detector{nullptr};
    bool is_asymmetric{false};  // os::asymmetric()
    os::user_interrupt* interrupt{nullptr};

    // Where the kernel thread goes on when nobody sits on it any more, with which thread pointer.
    arch::context registers{};
    void* pointer{nullptr};
    context* left{nullptr};  // The stray that it has just left, to be unlocked.

    // The next rider's: where to go on, and the signal mask for it. Published by `order`.
    const arch::context* target{nullptr};
    void* target_pointer{nullptr};
    void* target_argument{nullptr};
    std::uint64_t mask{0};
    base::atomic<std::uint32_t> order{stay};

    // A scheduler's own: its small stack, whether it waits there, and what it needs there, as plain words.
    char* island{nullptr};
    base::atomic<std::uint32_t> is_free{0};
    struct {
        std::uint32_t *state, *is_free, *order;
    } words{};

    // A spare's:
    enum : std::uint32_t { idle, busy, stray, orphan };
    base::atomic<std::uint32_t> phase{busy};
    seat* passes_to{
        nullptr};  // To be ordered to run, once the kernel thread is off the scheduler's stack.
};

// Puts the worker that wants to come in but is a stray back into the order of things: returns inside, when it is
// executed again. Does not return if it was terminated meanwhile.
[[gnu::noinline]] void come_in_slowly(context& self) noexcept;

// By the worker, before anything of ours; not at home.
UMS_ALWAYS_INLINE void come_in(context& self) noexcept {
    if (seat* k = self.seat.get(); k != nullptr) [[likely]] {
        // A stray that is stopped between the two lines may go on on another seat. Then the first of them is
        // marked "inside" by mistake, until its worker next comes in and goes out: a chance to detect is lost. If that
        // seat's scheduler has even left meanwhile, the mark goes where the seat was: one word of a stack, or of the
        // heap. Accepted: the stop must meet one of two instructions, and the other seat must end before the worker's
        // next execution.
        if (k->own.enter() && self.seat.get() == k) [[likely]]
            return;
    } else {
        const std::uint32_t outside = running | self.turn.get();
        std::uint32_t seen = outside;
        // relaxed: it only excludes.
        if (self.state.compare_exchange(seen, outside | locked, base::relaxed, base::relaxed))
            return;
    }
    come_in_slowly(self);
}

// By the worker, as the last thing of ours.
UMS_ALWAYS_INLINE void come_out(context& self) noexcept {
    if (seat* k = self.seat.get(); k != nullptr) [[likely]] {
        k->own.leave();
        if (k->detector != nullptr) k->detector->nudge(k->is_asymmetric);
        return;
    }
    const std::uint32_t outside = running | self.turn.get();
    std::uint32_t seen = outside | locked;
    // sync(ums.state): publishes what the worker did to its scheduler, should it be found blocked.
    self.state.compare_exchange(seen, outside, base::release, base::relaxed);
}

}  // namespace ums::scheduling
