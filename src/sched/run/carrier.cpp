// SPDX-License-Identifier: MIT
#include "sched/run/carrier.hpp"

#include <cerrno>
#include <cstdio>
#include <pthread.h>
#include <unistd.h>
#include <utility>

#include "base/assert.hpp"
#include "os/cpu/membarrier.hpp"
#include "os/cpu/topology.hpp"
#include "os/memory.hpp"
#include "os/signal/signal_stack.hpp"
#include "os/thread/at_rest.hpp"
#include "os/thread/slice.hpp"
#include "sched/block/carrier_pool.hpp"
#include "sched/block/hand_off.hpp"
#include "sched/block/stop.hpp"
#include "sched/lock/bias.hpp"
#include "sched/run/cluster.hpp"
#include "sched/run/search.hpp"
#include "sched/run/wake.hpp"

namespace ums::sched {

namespace {

// Carriers of one processor share its CPU when blocks end: each that comes back runs until it is
// stopped or blocks again. With the kernel's own slices of some milliseconds, they wait until a
// tick for each other and for the one that has the processor, gather there, and then take the CPU
// one after another while that one waits. Measured: docs/design/hand-off.md.
constexpr os::nanoseconds carrier_slice = 500'000;

}  // namespace

carrier::carrier(carrier_pool& p) noexcept : pool{p}, stopping{stop::source, stop::relay_bytes} {
    UMS_ASSERT(static_cast<void*>(this) == static_cast<carrier_core*>(this),
               "a carrier does not begin with what its fiber touches of it");
    ownership.reset(os::asymmetric());
    ownership.vacate();
}

// What a carrier knows of its kernel thread. By that.
void carrier::begin() noexcept {
    char name[16];
    const processor* first = proc.get();
    if (first != nullptr)
        std::snprintf(name, sizeof name, "ums %.4s/%u", pool.home().name().c_str(),
                      first->index() % 10000);
    else
        std::snprintf(name, sizeof name, "ums %.4s/+", pool.home().name().c_str());
    pthread_setname_np(pthread_self(), name);
    (void)os::ask_for_slice(carrier_slice);  // Without it everything works as well, only slower.
    tid.set(gettid());
    cpu.begin();
    pinned_to = -1;
    stopping.deferrals = 0;
    stop::source.unblock();
    errno_at = &errno;
    exceptions = arch::exception_state_of_thread();
}

void carrier::run() noexcept {
    begin();
    const os::at_rest counted;
    const os::signal_stack overflow_report;  // A fiber's overflow leaves no room for a handler.
    race.adopt_current();
#if defined(UMS_ASAN)
    pthread_attr_t attributes;
    void* bottom = nullptr;
    std::size_t bytes = 0;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &bottom, &bytes);
    pthread_attr_destroy(&attributes);
    arch::set_bounds(loop_shadow, bottom, bytes);
#endif
    arch::happens_before(this);  // Fibers that run here come after this thread's start.
    UMS_ASSERT(running.get() == nullptr && !has_borrowed,
               "a kernel thread starts as a carrier that is busy");
    os::set_thread_slot(this);
    while (pool.wait_for_processor(*this)) {
        wake_place.end();
        if (proc.get() == nullptr) continue;  // The processor was put back.
        arch::happens_before(this);           // And after the processor was made.
        follow_processor();
        run_fibers();
    }
    UMS_ASSERT(proc.get() == nullptr && !ownership.is_inside(), "a carrier ends with a processor");
    cpu.end();
    stopping.interrupt.close();
    tid.set(0);  // The kernel may give it to another thread.
    os::set_thread_slot(nullptr);
}

// The thread's alternate signal stack stays what it was.
bool carrier::adopt(fiber& f) noexcept {
    UMS_ASSERT(proc.get() != nullptr, "a carrier adopts a thread, and holds no processor");
    constexpr std::size_t bytes = os::page_bytes + os::kernel_thread::stack_bytes;
    auto* const stack = static_cast<char*>(os::map(bytes));
    if (stack == nullptr) return false;
    os::system.mprotect(stack, os::page_bytes, PROT_NONE);
    char* const bottom = stack + os::page_bytes;
    arch::register_stack(bottom, stack + bytes);
    arch::set_bounds(loop_shadow, bottom, bytes - os::page_bytes);
    arch::make_context(loop, stack + bytes, &begin_adopted, this);
    begin();
    race.create("carrier");
    is_adopted = true;
    running.set(&f);
    os::set_thread_slot(this);
    return true;
}

void carrier::follow_processor() noexcept {
    UMS_ASSERT(proc.get() != nullptr, "a carrier follows no processor");
    const int place = static_cast<int>(proc.get()->index());
    if (place != pinned_to) pool.home().place_thread(static_cast<unsigned>(place), pinned_to < 0);
    pinned_to = place;
}

// Inlined, because it begins in the processor's TSan context and ends in the thread's own.
UMS_ALWAYS_INLINE void carrier::retire() noexcept {
    processor& left = *proc.get();
    UMS_ASSERT(ownership.is_inside() && running.get() == nullptr,
               "a carrier retires outside of its processor, or with a fiber");
    parkable* const remover = left.retirement.remover;
    // Before the remover is woken: it may belong to this processor by the policy, and then the
    // others get it only once the policy has given up what it kept for this one.
    if (remover != nullptr) pool.home().detach_from_policy(left.index());
    search::give_all_away(left);
    proc.set(nullptr);
    ownership.vacate();
    bias::renew(left);
    left.retirement.last_holder = this;
    left.set_holder(nullptr);  // Thieves that still see this carrier find that it holds nothing.
    turn.set(turn_word::shall_end);  // Its own, as long as it is in no list.
    arch::happens_before(&left);     // All that ran here comes before this thread's end.
    leave(race);
    arch::happens_after(&left);
    if (remover != nullptr) wake(*remover);
}

// Its fiber keeps it, and waits.
UMS_ALWAYS_INLINE void carrier::give_to_relief() noexcept {
    // Null if the fiber left in rejoin(), without a processor. After run() this carrier may be
    // given a processor again at once.
    if (carrier* const to = keeping.gives_to.get()) {
        keeping.gives_to.set(nullptr);
        hand_off::move(*this, *to);
        leave(race);
        arch::happens_after(to);  // After the fiber that took it from the pool.
        pool.run(*to);
    }
}

// What waits here would wait until the look that was put off.
[[gnu::cold]] void carrier::hurry_look(const processor& p) noexcept {
    if (p.looks_wanted() || p.next_deadline() < os::now() + carry::detector::put_off)
        detection::keeps_waiting(take_look());
}

// Inside. Inlined: as retire().
UMS_ALWAYS_INLINE void carrier::run_on(fiber* f) noexcept {
    processor* p = proc.get();
    for (;;) {
        if (f == nullptr) f = search::find(*p, *this);
        if (f == nullptr) return retire();
        running.set(f);
        const std::uint64_t look = detection::runs();
        detectors_look.set(look);
        if (look != 0) [[unlikely]]
            hurry_look(*p);
        arch::start_switch(loop_shadow, f->shadow);
        // The trace shows that a fiber runs when it is switched to, and not again when it comes
        // back to the carrier that it keeps.
        after_switch* const traced =
            is_kept.get() || p->trace == nullptr ? nullptr : &p->trace->from_loop;
        const arch::arrival a = arch::switch_context(loop, f->context, this, traced);
        arch::finish_switch(loop_shadow);
        if (a.after != nullptr) {
            const auto* h = static_cast<const after_switch*>(a.after);
            h->finish(*h, *this);
        }
        if (keeping.stands_by.get()) [[unlikely]]
            return give_to_relief();
        // Inside its processor again, or (rejoin()) without one.
        p = proc.get();
        if (p == nullptr) return;
        UMS_ASSERT(ownership.is_inside(), "a carrier's loop goes on outside of its processor");
        f = nullptr;
    }
}

// Until the processor is gone: taken while a fiber was blocked, or retired.
void carrier::run_fibers() noexcept {
    processor* p = enter();
    UMS_ASSERT(p != nullptr, "a carrier was told to run, and holds no processor");
    if (fiber* stopped = std::exchange(brings, nullptr))
        p->make_ready(*stopped, processor::place::back);
    if (const after_switch* const h = keeping.begun.get()) {
        keeping.begun.set(nullptr);
        h->finish(*h, *this);
    }
    fiber* f = keeping.runs_first.get();
    keeping.runs_first.set(nullptr);
    // A round has ended, so the inboxes and the pinned fibers have their turn. Where processors
    // often change their carrier, for hand-offs or preemptions, no round may ever end by its count.
    if (f == nullptr) f = p->pick_at_round_end();
    // As search::find() does: the thread that left it to this carrier had found nothing to run.
    if (f != nullptr && p->next_deadline() != os::never)
        search::tell_watcher(*p, p->next_deadline());
    run_on(f);
}

// The first time that the fiber that was adopted leaves the processor to nobody, and from then on.
UMS_UNINSTRUMENTED void carrier::begin_adopted(void*, void* after, void* self_) noexcept {
    auto& self = *static_cast<carrier*>(self_);
    arch::finish_switch(self.loop_shadow);
    if (const auto* h = static_cast<const after_switch*>(after)) h->finish(*h, self);
    if (self.keeping.stands_by.get())
        self.give_to_relief();
    else if (self.proc.get() != nullptr)
        self.run_on(nullptr);
    for (;;) {
        while (self.pool.wait_for_processor(self)) {
            self.wake_place.end();
            if (self.proc.get() == nullptr) continue;  // Put back.
            self.follow_processor();
            self.run_fibers();
        }
        self.turn.set(turn_word::holds);  // Its processor has retired: a spare from now on.
    }
}

}  // namespace ums::sched
