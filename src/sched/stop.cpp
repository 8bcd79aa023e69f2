// SPDX-License-Identifier: MIT
#include "sched/stop.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <link.h>
#include <ucontext.h>

#include "arch/context.hpp"
#include "os/futex.hpp"
#include "os/user_interrupt.hpp"
#include "sched/carrier.hpp"
#include "sched/carrier_pool.hpp"
#include "sched/cluster.hpp"
#include "sched/habit.hpp"
#include "sched/hand_off.hpp"

namespace ums::sched {

namespace {

// Text in which a stop is put off. Written before any carrier runs.
struct range {
    std::uintptr_t first, end;
};
constexpr int most_ranges = 16;
range ranges[most_ranges];
int range_count = 0;

// For how long each time.
constexpr os::nanoseconds deferral = 100'000;

bool is_better_later(std::uintptr_t at) noexcept {
    return std::any_of(ranges, ranges + range_count,
                       [at](const range& r) { return at >= r.first && at < r.end; });
}

std::uintptr_t instruction(const void* context) noexcept {
    return static_cast<std::uintptr_t>(
        static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
}

// On the loop's stack of the carrier that gave its processor to the stopped one: the crossing is free again.
void finish_crossing(const handover& h, carrier&) noexcept {
    auto& target = *static_cast<carrier*>(h.other);
    target.pool.run(target);
}

[[gnu::noinline]] void pass_processor_on(carrier& by, const handover* left,
                                         carrier& target) noexcept {
    if (left != nullptr) left->finish(*left, by);
    by.running.set(nullptr);
    hand_off::move(by, target);
    by.own.publish();
}

// What the context of a stopped fiber leads to. No instrumented frame may be entered here in one TSan context and left
// in another.
UMS_UNINSTRUMENTED void cross(void* by_, void* handover_, void* target_) noexcept {
    auto& by = *static_cast<carrier*>(by_);
    auto& target = *static_cast<carrier*>(target_);
    arch::after_switch(target.crossing_shadow);
    pass_processor_on(by, static_cast<const handover*>(handover_), target);
    by.race.resume();
    by.own.let_go();
    arch::before_last_switch(by.loop_shadow);
    arch::context abandoned;
    arch::switch_context(abandoned, by.loop, &by,
                         by.leave_behind(&finish_crossing, nullptr, &target));
    __builtin_unreachable();
}

// Until somebody gives this carrier a processor.
void wait_for_turn(carrier& c) noexcept {
    // sync(carrier.turn): sees the processor.
    while (c.turn.load(base::acquire) == carrier::waits) os::futex_wait(c.turn, carrier::waits);
}

// The carrier has no processor. Any of its cluster's will do, but for a pinned fiber.
void stop_without_processor(carrier& c, fiber& f) noexcept {
    c.pool.count_stop(false);
    if (f.is_pinned.get() || !c.has_borrowed)
        return f.home_cluster.get()->make_ready_from_outside(f);
    if (c.pool.take_or_stop(c))
        c.turn.store(carrier::holds, base::relaxed);  // Its own: it is in no list.
    else
        c.pool.home().wake_for_work();
}

// Makes the fiber ready and waits until somebody has given this carrier a processor. False: not now.
bool stop_here(carrier& c, fiber& f) noexcept {
    // Whoever has a claim on the carrier is waited for, and nobody gets one from now on: who does looks at is_stopping
    // (hand_off::claim()). So the processor, and whether a permit is borrowed, are this thread's to change.
    if (c.enter() != nullptr) c.leave(f.race);
    carrier* spare = nullptr;
    const bool preempted = c.proc.get() != nullptr;
    if (preempted) {
        if (!c.pool.borrow_permit(c)) return false;
        spare = c.pool.take_ready_spare();
        if (spare == nullptr) {
            c.pool.give_borrowed_permit(c);
            return false;
        }
    }
    const arch::stack_shadow shadow = f.shadow;
    f.shadow = c.crossing_shadow;
    arch::make_context(f.context, c.crossing + stop::crossing_bytes, &cross, &c);
    c.turn.store(carrier::waits, base::relaxed);
    if (preempted) {
        c.pool.count_stop(true);
        // Its own place in the order: at the back, as after a yield.
        c.enter()->make_ready(f, false);
        hand_off::give_up(c, *spare);
    } else {
        stop_without_processor(c, f);
    }
    wait_for_turn(c);
    f.shadow = shadow;
    if (!preempted) habit::went_on(f);
    c.follow_processor();
    c.pool.come_back(c);
    return true;
}

bool is_due(carrier& c, const fiber& f) noexcept {
    const processor* p = c.proc.get();
    if (p == nullptr) return f.blocks.depth.get() == 0;  // The end of a marked region asks for one.
    if (c.pool.time_slice == 0) return false;            // A late signal.
    const std::uint64_t now = p->activity();
    const bool moved = now != c.seen_at_tick;
    c.seen_at_tick = now;
    return !moved && p->is_wanted();
}

}  // namespace

void stop::arm_tick(carrier& c) noexcept {
    if (c.pool.time_slice != 0 && c.interrupt != nullptr) c.interrupt->arm(c.pool.time_slice);
}

void stop::on_interrupt(const siginfo_t&, void* context) noexcept {
    const int kept_errno = errno;
    carrier* c = this_carrier();
    if (c == nullptr) return;
    fiber* f = c->running.get();
    os::nanoseconds again = 0;
    if (f != nullptr && is_due(*c, *f)) {
        if (f->blocks.shields.get() != 0) {
            f->blocks.stop_wanted.set(true);
        } else if (c->own.is_inside() || c->unstoppable.get() != 0) {
            // It finds out by itself, or is out again soon.
            again = deferral;
        } else if (is_better_later(instruction(context)) && ++c->deferrals < stop::most_deferrals) {
            again = deferral;
        } else {
            c->deferrals = 0;
            c->unstoppable.add(1);
            c->is_stopping.set(true);
            if (!stop_here(*c, *f)) again = deferral;
            c->is_stopping.set(false);
            // Of interest again, and a detector that meanwhile found nobody who was may have gone to sleep.
            if (const auto* by = carrier_pool::watched_by) by->runs();
            c->unstoppable.add(~std::uint32_t{0});
        }
    }
    if (c->interrupt != nullptr) {
        if (again != 0)
            c->interrupt->arm(again);
        else
            arm_tick(*c);
    }
    errno = kept_errno;
}

void stop::learn_where_to_wait() {
    range_count = 0;
    dl_iterate_phdr(
        [](dl_phdr_info* object, std::size_t, void*) {
            static constexpr const char* names[] = {"/libc.so",    "/libc-",     "/ld-linux",
                                                    "/libpthread", "/libstdc++", "/libc++",
                                                    "/libgcc_s"};
            const bool is_one = std::any_of(std::begin(names), std::end(names), [&](const char* n) {
                return std::strstr(object->dlpi_name, n) != nullptr;
            });
            if (!is_one) return 0;
            for (int i = 0; i < object->dlpi_phnum && range_count < most_ranges; ++i) {
                const auto& part = object->dlpi_phdr[i];
                if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
                const std::uintptr_t first = object->dlpi_addr + part.p_vaddr;
                ranges[range_count++] = {first, first + part.p_memsz};
            }
            return 0;
        },
        nullptr);
}

}  // namespace ums::sched
