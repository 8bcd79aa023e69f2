// SPDX-License-Identifier: MIT
#pragma once

// workers/scheduler/seat.hpp: a kernel thread that can carry a scheduler, and how a worker's code
// is told from ours.
//
// A scheduler sits on its own kernel thread. When a worker blocks there in a call that was not
// announced (src/carry), the scheduler moves to a spare kernel thread (workers/left/spares.hpp) and
// leaves the worker behind, a stray. When its call returns, the stray runs on until it is stopped
// or calls us. Then it is queued like any worker that comes back, and the kernel thread is free: a
// spare goes back to the others, and the scheduler's own thread waits for the scheduler, which
// moves back at its next landing.
//
// `own` (carry/ownership.hpp) says where the kernel thread is: inside, which means in the
// scheduler's code or in ours; or outside, in a worker's. Only while it is outside can another
// thread claim it and take the scheduler away. From then on it is vacant, and the worker finds out
// when it wants to come in. A worker goes outside on its own stack, after the switch, and comes in
// before the next one, so a claim never hits a kernel thread that is half way between the two.

#include "arch/context.hpp"
#include "arch/sanitizer.hpp"
#include "base/assert.hpp"
#include "carry/detect/detector.hpp"
#include "carry/interrupt.hpp"
#include "carry/ownership.hpp"
#include "os/thread/placement.hpp"
#include "os/thread/thread_cpu.hpp"
#include "workers/worker/context.hpp"

namespace ums::scheduling {

// What stops strays (workers/left/stray.hpp).
inline constinit carry::interrupt_source strays;

struct alignas(64) seat {
    carry::ownership ownership;
    base::owned<int> tid;  // The id of its kernel thread. Set before the seat carries a scheduler.
    os::thread_cpu cpu;
    // A spare's: where it wakes up. Owned by its waker, then by the spare itself.
    os::placement wake_place;
    // Owned by the code that is inside, or that holds a claim:
    base::owned<std::uint64_t> turns{0};  // Executions of workers: what a detector compares.
    base::atomic<scheduler_thread*> rider{nullptr};
    // Set before the seat carries a scheduler; null: no detector watches it.
    carry::detector* detector{nullptr};
    bool is_asymmetric{false};  // os::asymmetric()
    carry::interrupt interrupt{strays};

    // Where the kernel thread continues when no scheduler sits on it any more, and with which
    // thread pointer.
    arch::context registers{};
    void* pointer{nullptr};
    context* left{nullptr};  // The stray that has just left it, to be unlocked.

    // For the next rider: where to continue, and with which signal mask. Published by `order`.
    const arch::context* target{nullptr};
    void* target_pointer{nullptr};
    void* target_argument{nullptr};
    std::uint64_t mask{0};
    base::atomic<std::uint32_t> order{stay};

    // For a scheduler's own seat: its small stack, whether it waits there, and what it needs there,
    // as plain words.
    char* island{nullptr};
    base::atomic<std::uint32_t> is_free{0};
    struct {
        std::uint32_t *state, *is_free, *order;
    } words{};

    // For a spare:
    enum : std::uint32_t {
        idle,    // In the list of spares. Next: busy.
        busy,    // Carries a scheduler, or is on its way to or from the list. Next: idle, stray.
        stray,   // Carries a stray only. Next: busy, when that has left; orphan.
        orphan,  // The same, and the last scheduler has left: it ends when the stray has.
    };
    base::atomic<std::uint32_t> phase{busy};
    // Returns false if the spare was not in phase `from`.
    bool change_phase(std::uint32_t from, std::uint32_t to) noexcept {
        UMS_ASSERT((from == idle && to == busy) || (from == busy && (to == idle || to == stray)) ||
                       (from == stray && (to == busy || to == orphan)),
                   "a spare's phase may not become that from this");
        // relaxed: the list's lock, the order or the join orders what is done with the spare.
        return phase.compare_exchange(from, to, base::relaxed, base::relaxed);
    }
    int last_stray = 0;  // The id of the last stray's thread.
    // The seat to be ordered to run, once the kernel thread is off the scheduler's stack.
    seat* passes_to{nullptr};
};

// Makes a stray that wants to come in an ordinary worker again: returns inside, when the worker is
// executed again. Does not return if the worker was terminated meanwhile.
void come_in_slowly(context& self) noexcept;

// The worker calls this before it runs any of our code; not at home. Call it only in functions of
// UMS_CROSSING (workers/left/stop_point.hpp): if stopped after the load, a worker would enter a
// seat that it has left.
UMS_ALWAYS_INLINE void come_in(context& self) noexcept {
    if (!self.seat.get()->ownership.enter()) [[unlikely]]
        come_in_slowly(self);
}

// The worker calls this at the end of our code. Also only in functions of UMS_CROSSING.
UMS_ALWAYS_INLINE void come_out(context& self) noexcept {
    seat* k = self.seat.get();
    k->ownership.leave();
    if (k->detector != nullptr) k->detector->nudge(k->is_asymmetric);
}

}  // namespace ums::scheduling
