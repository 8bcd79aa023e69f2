// SPDX-License-Identifier: MIT
//
// Why no worker and no scheduler is lost. A seat has one of three: a scheduler that is inside, a worker outside with its
// scheduler above it (`rider`), or a stray (`rider` is null, the seat vacant). The second becomes the third only by who
// has a claim, in leave_behind(); the third ends only by the stray itself, in park(), which runs once: by the
// handler or by come_in_slowly(), and that blocks the signal before it looks whether it still is one. A
// scheduler whose worker was left behind has its next seat before the seat that it leaves becomes vacant, and the spare
// that carries it is ordered afterwards.
//
// A stray is queued, in park(), before it has left its kernel thread, so whoever dequeues it may find it `locked`: as in
// crossing.cpp. Its home may get the order to end then; it obeys when the worker is not locked any more.

#include "ums/stray.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "arch/bare.hpp"
#include "arch/x86_64/thread_pointer.hpp"
#include "os/futex.hpp"
#include "os/membarrier.hpp"
#include "os/no_stop.hpp"
#include "os/system.hpp"
#include "ums/crossing.hpp"
#include "ums/home.hpp"
#include "ums/mode.hpp"
#include "ums/scheduler_thread.hpp"
#include "ums/spares.hpp"
#include "ums/stop_point.hpp"
#include "ums/watch.hpp"
#include "ums/worker_thread.hpp"

namespace ums::scheduling {

namespace {

constexpr std::size_t island_bytes = 64 * 1024;
// How long a stray may run on, and how long a stop is put off, at first and at most.
constexpr os::nanoseconds grace = 20'000, deferral = 50'000;
constexpr unsigned most_doublings = 8;

std::uint32_t* word(base::atomic<std::uint32_t>& of) noexcept {
    return static_cast<std::uint32_t*>(const_cast<void*>(of.address()));
}

// The scheduler's own kernel thread, between a stray that has left it and the scheduler's return. Its thread pointer is
// the scheduler's, who may use it elsewhere: see arch/bare.hpp.
UMS_BARE void island_entry(void* carrier, void*, void*) noexcept {
    auto* k = static_cast<seat*>(carrier);
    std::uint32_t *state = k->words.state, *is_free = k->words.is_free, *order = k->words.order;
    // First, so that who has executed the worker finds the seat free. sync(ums.seat)
    __atomic_store_n(is_free, 1u, __ATOMIC_RELEASE);
    arch::bare_futex_wake_all(is_free);
    // sync(ums.state): publishes the saved registers to who executes the worker.
    const std::uint32_t was =
        __atomic_fetch_and(state, ~std::uint32_t{locked | awaited}, __ATOMIC_ACQ_REL);
    if ((was & awaited) != 0) arch::bare_futex_wake_all(state);
    // sync(ums.seat): sees where to go on.
    while (__atomic_exchange_n(order, std::uint32_t{stay}, __ATOMIC_ACQUIRE) == stay)
        arch::bare_futex_wait(order, stay);
    arch::bare_signal_mask(&k->mask);
    arch::switch_identity(k->registers, *k->target, k->target_pointer, k->target_argument);
}

// Leaves the kernel thread for who executes the worker next. The signals are blocked.
void park(context& self) noexcept {
    seat& k = *self.seat.get();
    // sync(ums.state): publishes what the worker did to a resume that queues it.
    self.state.store(held | locked, base::release);
    if (!become_available(self)) {
        arch::forget_frames();
        order_home(self, end);  // It waits until the worker has left this kernel thread.
    }
    if (k.island != nullptr) {
        k.words = {word(self.state), word(k.is_free), word(k.order)};
        arch::make_context(k.registers, k.island + island_bytes, &island_entry, nullptr);
    } else {
        k.left = &self;
    }
    arch::happens_before(&self);
    arch::happens_before(&k);
    arch::switch_identity(self.registers, k.registers, k.pointer, &k);
    arch::happens_after(&self);
}

void block_signals(std::uint64_t* before) noexcept {
    constexpr int sigsetxid = 33;
    const std::uint64_t all = ~(std::uint64_t{1} << (sigsetxid - 1));
    os::system.signal_mask(&all, before);
}

// Futex mode: on the worker's own kernel thread. Returns inside.
void wait_as_stray(context& self) noexcept {
    self.at_home = true;
    come_back_inside(self);
}

bool is_stray(const context& self) noexcept {
    // sync(ums.seat): sees what was done when it was left behind.
    if (const seat* k = self.seat.get(); k != nullptr)
        return k->rider.load(base::acquire) == nullptr;
    return (self.state.load(base::acquire) & state_mask) == blocked;  // sync(ums.state): the same.
}

// The frame that the handler returns through was made on another kernel thread.
void move_frame(ucontext_t& frame) noexcept {
    stack_t alternate{};
    if (::sigaltstack(nullptr, &alternate) == 0) frame.uc_stack = alternate;
    std::uint64_t mask = 0;
    os::system.signal_mask(nullptr, &mask);
    *static_cast<std::uint64_t*>(static_cast<void*>(&frame.uc_sigmask)) = mask;
}

void count_blocked(context& c, block::cause why) noexcept {
    if (why == block::cause::page_fault)
        c.count.faults.add(1);
    else
        c.count.syscalls.add(1);
}

// What the scheduler's next landing tells.
void note_loss(scheduler_thread& s, context& w, block::cause why) noexcept {
    count_blocked(w, why);
    count_blocked(*s.self, why);
    worker_left(s, w);
    s.reason = arrival_reason::lost;
    s.payload = why == block::cause::page_fault ? 0 : 1;
}

}  // namespace

void come_in_slowly(context& self) noexcept {
    for (;;) {
        seat* k = self.seat.get();
        if (k != nullptr) {
            if (k->own.enter()) {
                base::compiler_fence();
                if (self.seat.get() == k) return;
                continue;  // Stopped in between, and gone on elsewhere.
            }
        } else {
            const std::uint32_t outside = running | self.turn.get();
            std::uint32_t seen = outside;
            // relaxed: it only excludes.
            if (self.state.compare_exchange(seen, outside | locked, base::relaxed, base::relaxed))
                return;
            if (seen == (outside | locked)) return;  // It is inside: the end of a critical region.
            if ((seen & examined) != 0) {
                sched_yield();  // Its scheduler is about to decide.
                continue;
            }
        }
        std::uint64_t mask = 0;
        block_signals(&mask);
        const bool must_park = is_stray(self);
        if (must_park) {
            if (self.seat.get() != nullptr)
                park(self);  // Goes on with the mask of another kernel thread.
            else
                wait_as_stray(self);
        }
        if (!must_park || self.seat.get() == nullptr) os::system.signal_mask(&mask, nullptr);
        if (must_park) return;
    }
}

void leave_behind(seat& k, std::uint64_t seen, block::cause why) noexcept {
    if (!k.own.try_claim()) return;
    // sync(ums.seat): as it was seated.
    scheduler_thread* s = k.rider.load(base::acquire);
    if (s == nullptr || s->running == nullptr || k.turns.get() != seen) return k.own.unclaim();
    seat* next = spares().take();
    if (next == nullptr) return k.own.unclaim();  // One is being made; the detector looks again.
    context& w = *s->running;
    note_loss(*s, w, why);
    // sync(ums.state): the worker finds out that it is a stray.
    w.state.store(blocked, base::release);
    s->seat = next;
    next->target = &s->base.at;
    next->target_pointer = s->pointer;
    next->target_argument = &s->base;
    next->mask = s->mask;
    // Before the worker can find out, and leave.
    if (k.island == nullptr)
        k.phase.store(seat::stray, base::relaxed);  // relaxed: published below.
    next->own.occupy();
    // sync(ums.seat): publishes the scheduler to who looks at its new seat.
    next->rider.store(s, base::release);
    k.own.vacate();
    // sync(ums.seat): who sees it vacant sees all of the above.
    k.rider.store(nullptr, base::release);
    k.own.unclaim();
    if (k.interrupt != nullptr) k.interrupt->arm(grace);
    arch::happens_before(&s->base);
    order_seat(*next);
}

bool leave_behind(scheduler_thread& s, block::cause why) noexcept {
    context& w = *s.running;
    std::uint32_t seen = running | s.turn;
    // sync(ums.state): sees what the worker did. It stays outside, and so does not end, until we are done.
    if (!w.state.compare_exchange(seen, seen | examined, base::acquire, base::relaxed))
        return false;
    if (w.interrupt == nullptr) w.interrupt = make_interrupt(w.tid.get());
    if (w.interrupt != nullptr) w.interrupt->arm(grace);
    // sync(ums.state): the worker finds out that it is a stray.
    w.state.store(blocked, base::release);
    // By now it may be executed again, by another: nothing of it may be touched but its counters.
    note_loss(s, w, why);
    return true;
}

void return_to_own_seat(scheduler_thread& s, bool at_any_cost) noexcept {
    if (s.seat == &s.own_seat) return;
    seat& own = s.own_seat;
    // sync(ums.seat): sees that its kernel thread has left the stray.
    while (own.is_free.load(base::acquire) == 0) {
        if (!at_any_cost) return;
        os::futex_wait(own.is_free, 0);
    }
    own.is_free.store(0, base::relaxed);  // relaxed: the order publishes it.
    block_signals(&s.mask);
    own.mask = s.mask;
    own.target = &s.base.discarded;
    own.target_pointer = s.pointer;
    own.target_argument = &s;
    seat& from = *s.seat;
    from.own.vacate();
    from.rider.store(nullptr, base::relaxed);  // relaxed: nobody is to be found here any more.
    from.passes_to = &own;
    s.seat = &own;
    own.own.occupy();
    (void)own.own.enter();  // On behalf of a kernel thread that waits: the scheduler is inside.
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

void on_interrupt(const siginfo_t&, void* frame) noexcept {
    context* self = current;
    if (!is_worker(self) || self->at_home) return;
    seat* k = self->seat.get();
    os::user_interrupt* clock = k != nullptr ? k->interrupt : self->interrupt;
    if (!is_stray(*self)) {
        // Futex mode: its scheduler sets the clock, and only then makes it a stray.
        if (k == nullptr && clock != nullptr && self->deferrals++ < 3) clock->arm(deferral);
        return;
    }
    const bool is_inside = k != nullptr && k->own.is_inside();
    if (is_inside || os::plain_sections() != 0 || !is_stop_point(*self->thread.get(), frame)) {
        const unsigned doublings =
            self->deferrals < most_doublings ? self->deferrals++ : most_doublings;
        if (clock != nullptr) clock->arm(deferral << doublings);
        return;
    }
    self->deferrals = 0;
    if (k != nullptr) {
        block_signals(nullptr);
        park(*self);
        move_frame(*static_cast<ucontext_t*>(frame));
    } else {
        wait_as_stray(*self);
    }
    come_out(*self);
}

}  // namespace ums::scheduling
