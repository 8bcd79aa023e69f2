// SPDX-License-Identifier: MIT
//
// Why no worker and no scheduler is lost: a seat has one of three things: a scheduler that is
// inside; a worker outside with its scheduler above it (`rider`); or a stray (`rider` is null, the
// seat vacant). Only code that holds a claim turns the second into the third, in hand_off().
// Only the stray itself ends the third, in park(), which runs once: called by the handler or by
// come_in_slowly(), and the latter blocks the signal before it looks whether the worker still is a
// stray. A scheduler whose worker was left behind has its next seat before the seat that it leaves
// becomes vacant, and the spare that carries it is ordered afterwards.
//
// park() queues a stray before the stray has left its kernel thread, so the consumer that dequeues
// it may find it `locked`, as in crossing.cpp. Its home may get the order to end then, and obeys
// once the worker is no longer locked.

#include "workers/left/stray.hpp"

#include <cstdio>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "arch/bare.hpp"
#include "arch/x86_64/thread_pointer.hpp"
#include "base/assert.hpp"
#include "os/clock.hpp"
#include "os/cpu/membarrier.hpp"
#include "os/futex.hpp"
#include "os/no_stop.hpp"
#include "os/system.hpp"
#include "workers/left/crossing.hpp"
#include "workers/left/spares.hpp"
#include "workers/left/stop_point.hpp"
#include "workers/left/watch.hpp"
#include "workers/scheduler/scheduler_thread.hpp"
#include "workers/worker/home.hpp"
#include "workers/worker/worker_thread.hpp"

namespace ums::scheduling {

namespace {

constexpr std::size_t island_bytes = 64 * 1024;
// How long a stray may run on; and how long a stop is put off, at first and at most.
constexpr os::nanoseconds grace = 20'000, deferral = 50'000;
constexpr unsigned most_doublings = 8;

std::uint32_t* word(base::atomic<std::uint32_t>& of) noexcept {
    return static_cast<std::uint32_t*>(const_cast<void*>(of.address()));
}

// Runs on the scheduler's own kernel thread, between the stray that has left it and the scheduler's
// return. The thread pointer is the scheduler's, which may use it elsewhere: see arch/bare.hpp.
UMS_BARE void island_entry(void* carrier, void*, void*) noexcept {
    auto* k = static_cast<seat*>(carrier);
    std::uint32_t *state = k->words.state, *is_free = k->words.is_free, *order = k->words.order;
    // This comes first, so that a scheduler that has executed the worker finds the seat free.
    // sync(ums.seat)
    __atomic_store_n(is_free, 1u, __ATOMIC_RELEASE);
    arch::bare_futex_wake_all(is_free);
    // sync(ums.state): publishes the saved registers to the scheduler that executes the worker.
    const std::uint32_t was =
        __atomic_fetch_and(state, ~std::uint32_t{locked | awaited}, __ATOMIC_ACQ_REL);
    if ((was & awaited) != 0) arch::bare_futex_wake_all(state);
    // sync(ums.seat): sees where to continue.
    while (__atomic_exchange_n(order, std::uint32_t{stay}, __ATOMIC_ACQUIRE) == stay)
        arch::bare_futex_wait(order, stay);
    arch::bare_signal_mask(&k->mask);
    arch::switch_identity(k->registers, *k->target, k->target_pointer, k->target_argument);
}

// Takes the worker off its kernel thread, for the scheduler that executes it next. Requires: the
// signals are blocked.
void park(context& self) noexcept {
    seat& k = *self.seat.get();
    UMS_ASSERT(!self.at_home, "a worker is parked as a stray at home");
    // sync(ums.state): publishes what the worker did to a resume that queues it.
    self.state.set(held | locked, base::release);
    if (!become_available(self)) {
        arch::forget_frames();
        order_home(self, end);  // The home waits until the worker has left this kernel thread.
    }
    if (k.island != nullptr) {
        k.words = {self.state.bare(), word(k.is_free), word(k.order)};
        arch::make_context(k.registers, k.island + island_bytes, &island_entry, nullptr);
    } else {
        k.left = &self;
    }
    // Read before the edge: the edge does not cover what comes after it.
    void* const pointer = k.pointer;
    arch::happens_before(&self);
    arch::happens_before(&k);
    arch::switch_identity(self.registers, k.registers, pointer, &k);
    arch::happens_after(&self);
}

void block_signals(std::uint64_t* before) noexcept {
    constexpr int sigsetxid = 33;
    const std::uint64_t all = ~(std::uint64_t{1} << (sigsetxid - 1));
    os::system.signal_mask(&all, before);
}

bool is_stray(const context& self) noexcept {
    // sync(ums.seat): sees what was done when the worker was left behind.
    return self.seat.get()->rider.load(base::acquire) == nullptr;
}

// Adapts the frame that the handler returns through, which was made on another kernel thread.
void move_frame(ucontext_t& frame) noexcept {
    stack_t alternate{};
    if (::sigaltstack(nullptr, &alternate) == 0) frame.uc_stack = alternate;
    std::uint64_t mask = 0;
    os::system.signal_mask(nullptr, &mask);
    *static_cast<std::uint64_t*>(static_cast<void*>(&frame.uc_sigmask)) = mask;
}

void count_blocked(context& c, carry::cause why) noexcept {
    if (why == carry::cause::page_fault)
        c.count.faults.add(1);
    else
        c.count.syscalls.add(1);
}

// Waits until the kernel thread that the scheduler must end on is free. That may be never, and only
// the stray's call can free it.
void wait_for_own_seat(scheduler_thread& s) noexcept {
    constexpr os::nanoseconds long_enough = 1'000'000'000;
    base::atomic<std::uint32_t>& is_free = s.own_seat.is_free;
    const os::nanoseconds limit = os::now() + long_enough;
    bool has_said = false;
    // sync(ums.seat): sees that the stray has left.
    while (is_free.load(base::acquire) == 0) {
        if (has_said) {
            os::futex_wait(is_free, 0);
        } else if (!os::futex_wait(is_free, 0, limit)) {
            std::fprintf(stderr,
                         "ums: thread %d leaves scheduling mode and waits for its kernel thread: "
                         "worker %d blocks there, in a call that was not announced "
                         "(/proc/%d/task/%d/syscall)\n",
                         s.self->tid.get(), s.own_seat.last_stray, ::getpid(), s.self->tid.get());
            has_said = true;
        }
    }
}

// Notes what the scheduler's next landing reports.
void note_loss(scheduler_thread& s, context& w, carry::cause why) noexcept {
    count_blocked(w, why);
    count_blocked(*s.self, why);
    worker_left(s, w);
    s.reason = arrival_reason::lost;
    s.payload = why == carry::cause::page_fault ? 0 : 1;
}

}  // namespace

UMS_CROSSING void come_in_slowly(context& self) noexcept {
    for (;;) {
        std::uint64_t mask = 0;
        block_signals(&mask);
        if (is_stray(self)) return park(self);  // Continues with the mask of another kernel thread.
        os::system.signal_mask(&mask, nullptr);
        if (self.seat.get()->ownership.enter()) return;
    }
}

bool hand_off(seat& k, const carry::notice& what) noexcept {
    if (!k.ownership.try_claim()) return false;
    // sync(ums.seat): sees the scheduler as it was seated.
    scheduler_thread* s = k.rider.load(base::acquire);
    if (s == nullptr || s->running == nullptr || k.turns.get() != what.activity) {
        k.ownership.unclaim();
        return false;
    }
    seat* next = spares().take(what.free_cpu);
    if (next == nullptr) {  // The maker makes one; the detector looks again.
        k.ownership.unclaim();
        spares().replenish();
        return false;
    }
    UMS_ASSERT(s->seat == &k, "a scheduler rides on a seat that is not its own");
    UMS_ASSERT(next->rider.load(base::relaxed) == nullptr, "a spare carries two schedulers");
    context& w = *s->running;
    note_loss(*s, w, what.why);
    // sync(ums.state): the worker finds out that it is a stray.
    w.state.set(blocked, base::release);
    s->seat = next;
    next->target = &s->base.at;
    next->target_pointer = s->pointer;
    next->target_argument = &s->base;
    next->mask = s->mask;
    // Before the worker can find out that it is a stray, and leave.
    if (k.island == nullptr) {
        const bool was_busy = k.change_phase(seat::busy, seat::stray);
        UMS_ASSERT(was_busy, "a spare that carries nobody has a stray");
    }
    k.last_stray = w.tid.get();
    next->ownership.occupy();
    // sync(ums.seat): publishes the scheduler to a thread that looks at its new seat.
    next->rider.store(s, base::release);
    k.ownership.vacate();
    // sync(ums.seat): a thread that sees it vacant sees all of the above.
    k.rider.store(nullptr, base::release);
    k.ownership.unclaim();
    if (strays.is_possible()) k.interrupt.arm(k.tid.get(), grace);
    arch::happens_before(&s->base);
    if (what.free_cpu >= 0 && next->cpu.get() != what.free_cpu)
        next->wake_place.begin(next->tid.get(), what.free_cpu);
    order_seat(*next, run);
    spares().replenish();
    return true;
}

void return_to_own_seat(scheduler_thread& s, bool at_any_cost) noexcept {
    if (s.seat == &s.own_seat) return;
    seat& own = s.own_seat;
    // sync(ums.seat): sees that its kernel thread has left the stray.
    if (own.is_free.load(base::acquire) == 0) {
        if (!at_any_cost) return;
        wait_for_own_seat(s);
    }
    arch::happens_after(&own);  // park(): ThreadSanitizer does not see island_entry() set is_free.
    UMS_ASSERT(own.rider.load(base::relaxed) == nullptr, "a free seat has a rider");
    own.is_free.store(0, base::relaxed);  // relaxed: the order publishes it.
    block_signals(&s.mask);
    own.mask = s.mask;
    own.target = &s.base.discarded;
    own.target_pointer = s.pointer;
    own.target_argument = &s;
    seat& from = *s.seat;
    from.ownership.vacate();
    from.rider.store(nullptr, base::relaxed);  // relaxed: no thread is to be found here any more.
    from.passes_to = &own;
    s.seat = &own;
    own.ownership.occupy();
    // Called on behalf of a kernel thread that waits: the scheduler is inside.
    (void)own.ownership.enter();
    own.rider.store(&s, base::release);  // sync(ums.seat)
    arch::happens_before(&from);
    arch::switch_identity(s.base.discarded, from.registers, from.pointer, &from);
}

bool make_island(seat& own) noexcept {
    const long at = os::system.mmap(nullptr, island_bytes, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
    if (at < 0 && at > -4096) return false;
    own.island = reinterpret_cast<char*>(at);
    return true;
}

void give_island_back(seat& own) noexcept {
    if (own.island == nullptr) return;
    os::system.munmap(own.island, island_bytes);
    own.island = nullptr;
}

UMS_CROSSING void on_interrupt(const siginfo_t&, void* frame) noexcept {
    context* self = current;
    if (!is_worker(self) || self->at_home) return;
    if (!is_stray(*self)) return;
    seat& k = *self->seat.get();
    if (k.ownership.is_inside() || os::plain_sections() != 0 ||
        !is_stop_point(*self->thread.get(), frame)) {
        const unsigned doublings =
            self->deferrals < most_doublings ? self->deferrals++ : most_doublings;
        k.interrupt.again(deferral << doublings);
        return;
    }
    self->deferrals = 0;
    block_signals(nullptr);
    park(*self);
    move_frame(*static_cast<ucontext_t*>(frame));
    come_out(*self);
}

}  // namespace ums::scheduling
