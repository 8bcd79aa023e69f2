// SPDX-License-Identifier: MIT
#include "ums/scheduler_thread.hpp"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <unistd.h>

#include "arch/x86_64/thread_pointer.hpp"
#include "os/clock.hpp"
#include "os/futex.hpp"
#include "os/thread_state.hpp"
#include "rt/environment.hpp"
#include "sched/carrier.hpp"
#include "ums/mode.hpp"
#include "ums/stats_files.hpp"
#include "ums/stray.hpp"
#include "ums/totals.hpp"
#include "ums/worker_thread.hpp"

namespace ums::scheduling {

namespace {

constinit base::atomic<bool> is_measured{false};

bool measuring() noexcept {
    return is_measured.load(base::relaxed);  // relaxed: it decides nothing else.
}

void count_switch(scheduler_thread& s, context& w) noexcept {
    s.self->count.switches.add(1);
    w.count.switches.add(1);
    if (!measuring()) [[likely]] {
        if (w.count.executed_at.get() != 0) w.count.executed_at.set(0);
        return;
    }
    const auto now = static_cast<std::uint64_t>(os::now());
    w.count.executed_at.set(now);
    s.self->count.executed_at.set(now);
    if (s.left_at == 0) return;
    s.self->count.switch_ns.add(now - static_cast<std::uint64_t>(s.left_at));
    s.self->count.measured.add(1);
}

// Futex mode: when the scheduler looks at its worker, as block/monitor_detector.hpp does.
constexpr os::nanoseconds first_look = 50'000, longest_look = 10'000'000;

// Whether the worker, which is outside, is seen blocked.
bool is_blocked(const os::thread_state& of, block::cause& why) noexcept {
    using kind = os::thread_state::kind;
    const os::thread_state::seen seen = of.look();
    why = seen.what == kind::in_fault ? block::cause::page_fault : block::cause::system_call;
    return seen.what == kind::in_call || seen.what == kind::in_fault || seen.what == kind::waiting;
}

// Futex mode, at the landing: the worker's own kernel thread runs it.
void hand_over_and_wait(scheduler_thread& s) noexcept {
    s.is_back.store(0, base::relaxed);  // relaxed: the order below publishes it.
    const context& w = *s.running;
    order_home(*s.running, run);
    if (!s.is_watched) {
        // sync(ums.handover): sees why the worker gave back, and what it did.
        while (s.is_back.load(base::acquire) == 0) os::futex_wait(s.is_back, 0);
        return;
    }
    const os::nanoseconds begun = os::now();
    std::optional<os::thread_state> looked_at;
    // sync(ums.handover): as above.
    while (s.is_back.load(base::acquire) == 0) {
        const os::nanoseconds now = os::now();
        const os::nanoseconds next = now + std::clamp((now - begun) / 16, first_look, longest_look);
        if (os::futex_wait(s.is_back, 0, next)) continue;
        if (w.state.load(base::relaxed) != (running | s.turn)) continue;  // relaxed: advice.
        if (!looked_at) looked_at.emplace(w.tid.get());
        block::cause why;
        if (is_blocked(*looked_at, why) && leave_behind(s, why)) return;
    }
}

// Calls the procedure, or returns if it is done. Unwound by pthread_exit() in the procedure, so not
// noexcept.
void activate(void* argument) {
    auto& s = *static_cast<scheduler_thread*>(argument);
    arch::happens_after(&s);
    if (s.seat != &s.own_seat) [[unlikely]]
        return_to_own_seat(s, false);
    if (s.reason == arrival_reason::hand_over) hand_over_and_wait(s);
    context* w = s.running;
    switch (s.reason) {
        case arrival_reason::yield: {
            worker_left(s, *w);
            s.self->count.yields.add(1);
            // relaxed: the worker lives, so its handle does not change.
            const handle yielded = w->self.load(base::relaxed);
            // sync(ums.state): publishes the saved registers to who executes it.
            w->state.store(owned, base::release);
            // relaxed: who orders an end after this looks at the state. [[unlikely]]: see end_parked().
            if ((w->control.load(base::relaxed) & killed) != 0) [[unlikely]]
                end_parked(*w);
            return s.procedure(UMS_REASON_YIELD, yielded, s.argument);
        }
        case arrival_reason::blocked:
            worker_left(s, *w);
            s.self->count.syscalls.add(1);
            if (mode() == switch_mode::user) {
                // sync(ums.state): publishes the saved registers to the home, with the order.
                w->state.store(blocked, base::release);
                arch::happens_before(w);
                order_home(*w, run);
            }
            return s.procedure(UMS_REASON_BLOCKED, 1, nullptr);
        case arrival_reason::lost:
            return s.procedure(UMS_REASON_BLOCKED, s.payload, nullptr);
        case arrival_reason::startup:
            return s.procedure(UMS_REASON_STARTUP, 0, s.parameter);
        default:
            return;
    }
}

// Undoes enter(), also when pthread_exit() unwinds.
class entered {
public:
    explicit entered(scheduler_thread& s) noexcept : s_{s} {
        s_.self->scheduler.set(&s_);
        current = s_.self;
        totals.scheduler_entered();
        stats_files::write_if_old();
    }
    ~entered() {
        return_to_own_seat(s_, true);
        end_watch(s_);
        context* self = s_.self;
        totals.scheduler_left(*self);
        current = nullptr;
        contexts.withdraw(*self, self->self.load(base::relaxed));  // relaxed: its own.
        self->scheduler.set(nullptr);
        contexts.give(*self);
        leave_list(*s_.list);
        stats_files::write_if_old();
    }
    entered(const entered&) = delete;
    entered& operator=(const entered&) = delete;

private:
    scheduler_thread& s_;
};

// Waits until a worker that is on its way home has arrived there. False: it is not owned.
bool wait_until_parked(context& w) noexcept {
    for (int i = 0; i < 200; ++i) {
        // relaxed: the compare-and-swap of execute() decides.
        if ((w.state.load(base::relaxed) & locked) == 0) return true;
        base::spin_pause();
    }
    std::uint32_t seen = w.state.load(base::relaxed);  // relaxed: as above.
    if (seen != (owned | locked) && seen != (owned | locked | awaited)) return (seen & locked) == 0;
    // relaxed: nothing is published.
    if (w.state.compare_exchange(seen, seen | awaited, base::relaxed, base::relaxed))
        os::futex_wait(w.state, seen | awaited);
    return true;
}

// Why it cannot be executed now; 0: try again.
int refusal(context& w) noexcept {
    const std::uint32_t seen = w.state.load(base::relaxed);  // relaxed: advice.
    switch (seen & state_mask) {
        case none:
        case terminated:
            return -ESRCH;
        case owned:
            break;
        case held:
            return (w.control.load(base::relaxed) & ~killed) != 0 ? -EACCES : -EBUSY;
        default:
            return -EBUSY;
    }
    const std::uint32_t control = w.control.load(base::relaxed);  // relaxed: as above.
    if ((control & killed) != 0) {
        end_parked(w);
        return -ESRCH;
    }
    if (control != 0) return -EACCES;
    return wait_until_parked(w) ? 0 : -EBUSY;
}

// What the worker touches first, so that these misses overlap with those of the switch: with a thousand workers
// all of it has left the cache.
void prefetch(const context& w, const scheduler_thread& s) noexcept {
    const char* stack = static_cast<const char*>(w.registers.sp);
    __builtin_prefetch(stack);
    __builtin_prefetch(stack + 64);
    __builtin_prefetch(stack + 128);
    __builtin_prefetch(static_cast<const char*>(static_cast<const void*>(&w)) + 64);
    // `current` lies at the same distance of every thread pointer.
    __builtin_prefetch(
        static_cast<const char*>(w.pointer) +
        (reinterpret_cast<const char*>(&current) - static_cast<const char*>(s.pointer)));
}

bool claim(context& w, std::uint32_t inside) noexcept {
    std::uint32_t seen = owned;
    // relaxed: a suspension or an end that comes later takes effect later.
    return w.control.load(base::relaxed) == 0 &&
           // sync(ums.state): sees the saved registers.
           w.state.compare_exchange(seen, inside, base::acquire, base::relaxed);
}

}  // namespace

void worker_left(scheduler_thread& s, context& w) noexcept {
    arch::happens_after(&w);
    s.running = nullptr;
    if (measuring()) [[unlikely]] {
        s.left_at = os::now();
        if (const std::uint64_t since = w.count.executed_at.get(); since != 0)
            w.count.running_ns.add(static_cast<std::uint64_t>(s.left_at) - since);
    } else {
        s.left_at = 0;
    }
}

void measure(bool on) noexcept {
    is_measured.store(on, base::relaxed);
}  // relaxed: see measuring().

int enter(const ums_scheduler_options_t& options) {
    const sched::carrier* carrier = sched::this_carrier();
    if (current != nullptr || (carrier != nullptr && carrier->running.get() != nullptr))
        return -EPERM;
    scheduler_thread s;
    s.list = use_list(options.list);
    if (s.list == nullptr) return -EBADF;
    if (create_context(s.self) != 0) {
        leave_list(*s.list);
        return -ENOMEM;
    }
    static const bool from_start =
        (rt::environment::word("UMS_TIMES", 0, {{"0", 0}, {"1", 1}}) == 1 ? measure(true) : void(),
         true);
    (void)from_start;
    s.pointer = mode() == switch_mode::user ? arch::thread_pointer() : nullptr;
    s.list_handle = options.list;
    s.procedure = options.procedure;
    s.parameter = options.parameter;
    s.self->list.set(options.list);
    s.self->tid.set(::gettid());
    s.base.arrive = &activate;
    s.base.argument = &s;
    s.own_seat.pointer = s.pointer;
    if (const int failed = begin_watch(s); failed != 0) {
        contexts.withdraw(*s.self, s.self->self.load(base::relaxed));  // relaxed: its own.
        contexts.give(*s.self);
        leave_list(*s.list);
        return failed;
    }
    const entered for_as_long{s};
    land(s.base);
    return 0;
}

int execute(handle h) noexcept {
    context* self = current;
    if (!is_scheduler(self)) return -EPERM;
    context* w = contexts.find(h);
    if (w == nullptr) return -EBADF;
    scheduler_thread& s = *self->scheduler.get();
    s.turn = s.pointer != nullptr ? 0 : w->turn.get() + one_turn;
    const std::uint32_t inside = s.pointer != nullptr ? running : running | locked | s.turn;
    while (!claim(*w, inside)) [[unlikely]] if (const int why = refusal(*w); why != 0) return why;
    arch::happens_after(w);
    if (s.pointer != nullptr) prefetch(*w, s);  // In futex mode nothing is saved.
    w->runner = &s;
    w->list.set(s.list_handle);
    w->partner.set(self->self.load(base::relaxed));  // relaxed: its own.
    self->partner.set(h);
    s.running = w;
    count_switch(s, *w);
    if (s.pointer != nullptr) {
        w->seat.set(s.seat);
        s.seat->turns.add(1);
        // The last thing here: a detector may move the scheduler as soon as the worker is outside.
        arch::happens_before(w);
        arch::switch_identity(s.base.discarded, w->registers, w->pointer, w);
        __builtin_unreachable();
    }
    w->turn.set(s.turn);
    arch::happens_before(w);
    s.reason = arrival_reason::hand_over;
    land_again(s.base);
}

int leave_procedure() noexcept {
    if (!is_scheduler(current)) return -EPERM;
    scheduler_thread& s = *current->scheduler.get();
    s.reason = arrival_reason::leave;
    land_again(s.base);
}

}  // namespace ums::scheduling
