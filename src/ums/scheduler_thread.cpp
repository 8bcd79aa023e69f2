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

// When measuring began; 0: nothing is measured. An older time, of a worker or a scheduler, is from before.
constinit base::atomic<std::uint64_t> measured_from{0};

bool measuring() noexcept {
    return measured_from.load(base::relaxed) != 0;  // relaxed: it decides nothing else.
}

void measure_switch(scheduler_thread& s, context& w) noexcept {
    const auto now = static_cast<std::uint64_t>(os::now());
    w.count.executed_at.set(now);
    s.self->count.executed_at.set(now);
    if (s.left_at < measured_from.load(base::relaxed)) return;  // relaxed: as above.
    s.self->count.switch_ns.add(now - s.left_at);
    s.self->count.measured.add(1);
}

void measure_leaving(scheduler_thread& s, context& w) noexcept {
    s.left_at = static_cast<std::uint64_t>(os::now());
    const std::uint64_t since = w.count.executed_at.get();
    // relaxed: as above.
    if (since >= measured_from.load(base::relaxed)) w.count.running_ns.add(s.left_at - since);
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

// What the procedure is called with.
struct message {
    ums_reason_t reason;
    std::uintptr_t payload;
    void* parameter;
    bool is_none = false;  // It is not called: it is done.
};

UMS_ALWAYS_INLINE message after_yield(scheduler_thread& s, context& w) noexcept {
    s.self->count.yields.add(1);
    // relaxed: the worker lives, so its handle does not change.
    const handle yielded = w.self.load(base::relaxed);
    // sync(ums.state): publishes the saved registers to who executes it.
    w.state.store(owned, base::release);
    // Who orders an end stores that, then looks at the state. This is the light side of the argument in
    // os/membarrier.hpp, terminate_worker() the heavy one: one of them sees what the other stored, and ends it.
    if (s.own_seat.is_asymmetric) [[likely]]
        base::compiler_fence();
    else
        base::full_fence();
    // relaxed: the fences.
    if ((w.control.load(base::relaxed) & killed) != 0) [[unlikely]]
        end_if_killed(w);
    return {UMS_REASON_YIELD, yielded, s.argument};
}

// All but the usual.
[[gnu::noinline]] message after_anything(scheduler_thread& s) noexcept {
    if (s.seat != &s.own_seat) return_to_own_seat(s, false);
    if (s.reason == arrival_reason::hand_over) hand_over_and_wait(s);
    context* w = s.running;
    switch (s.reason) {
        case arrival_reason::yield:
            worker_left(s, *w);
            return after_yield(s, *w);
        case arrival_reason::blocked:
            worker_left(s, *w);
            s.self->count.syscalls.add(1);
            if (mode() == switch_mode::user) {
                // sync(ums.state): publishes the saved registers to the home, with the order.
                w->state.store(blocked, base::release);
                arch::happens_before(w);
                order_home(*w, run);
            }
            return {UMS_REASON_BLOCKED, 1, nullptr};
        case arrival_reason::lost:
            return {UMS_REASON_BLOCKED, s.payload, nullptr};
        case arrival_reason::startup:
            return {UMS_REASON_STARTUP, 0, s.parameter};
        default:
            return {.reason = 0, .payload = 0, .parameter = nullptr, .is_none = true};
    }
}

// Calls the procedure, from one place: always at the same depth. Unwound by pthread_exit() in it, so not noexcept.
void activate(void* argument) {
    auto& s = *static_cast<scheduler_thread*>(argument);
    arch::happens_after(&s);
    message m;
    if (s.reason != arrival_reason::yield || s.seat != &s.own_seat || measuring()) [[unlikely]] {
        m = after_anything(s);
        if (m.is_none) return;
    } else {
        context& w = *s.running;
        arch::happens_after(&w);
        s.running = nullptr;
        m = after_yield(s, w);
    }
    s.procedure(m.reason, m.payload, m.parameter);
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

// Waits until a worker that is on its way home has arrived there, or is not owned any more.
void wait_until_parked(context& w) noexcept {
    for (int i = 0; i < 200; ++i) {
        // relaxed: the compare-and-swap of execute() decides.
        if ((w.state.load(base::relaxed) & locked) == 0) return;
        base::spin_pause();
    }
    std::uint32_t seen = w.state.load(base::relaxed);  // relaxed: as above.
    if (seen != (owned | locked) && seen != (owned | locked | awaited)) return;
    // relaxed: nothing is published.
    if (w.state.compare_exchange(seen, seen | awaited, base::relaxed, base::relaxed))
        os::futex_wait(w.state, seen | awaited);
}

// Why it cannot be executed now; 0: try again.
int refusal(context& w) noexcept {
    // relaxed, both: advice.
    const std::uint32_t seen = w.state.load(base::relaxed) & state_mask;
    const std::uint32_t control = w.control.load(base::relaxed);
    if (seen == none || seen == terminated) return -ESRCH;
    if (seen == running) return -EBUSY;
    if ((control & killed) != 0) {
        end_if_killed(w);
        return -ESRCH;  // Also while it is on its way to its end.
    }
    if (seen != owned) return seen == held && control != 0 ? -EACCES : -EBUSY;
    if (control != 0) return -EACCES;
    wait_until_parked(w);
    return 0;  // It may have been terminated meanwhile, which the next look finds.
}

// The two lines of the context, the worker's frames, its `current` and what the C library has in its TLS block.
UMS_ALWAYS_INLINE void prefetch(const context* c, const char* stack, const char* pointer,
                                const scheduler_thread& s) noexcept {
    const auto* at = static_cast<const char*>(static_cast<const void*>(c));
    __builtin_prefetch(at, 1);
    __builtin_prefetch(at + 64, 1);
    __builtin_prefetch(stack);
    __builtin_prefetch(stack + 64);
    __builtin_prefetch(pointer);
    __builtin_prefetch(pointer + s.current_offset);
    __builtin_prefetch(pointer + s.errno_offset);
}

// With hundreds of workers, what the next one touches first has left the cache. Most schedulers execute the same
// one after `w` as the last time, so that is fetched now, a whole yield before it is wanted.
UMS_ALWAYS_INLINE void foresee(scheduler_thread& s, context& w) noexcept {
    if (context* last = s.last; last != nullptr) {
        last->after.is.set(&w);
        last->after.stack.set(static_cast<const char*>(w.registers.sp));
        last->after.pointer.set(static_cast<const char*>(w.pointer));
    }
    s.last = &w;
    s.expected = w.after.is.get();
    if (s.expected != nullptr) [[likely]]
        prefetch(s.expected, w.after.stack.get(), w.after.pointer.get(), s);
}

bool claim(context& w, std::uint32_t inside) noexcept {
    std::uint32_t seen = owned;
    // relaxed: a suspension or an end that comes later takes effect later.
    if (w.control.load(base::relaxed) != 0 ||
        // sync(ums.state): sees the saved registers.
        !w.state.compare_exchange(seen, inside, base::acquire, base::relaxed))
        return false;
    // The home publishes them by code that is not instrumented.
    arch::happens_after(&w);
    return true;
}

UMS_ALWAYS_INLINE void note_execution(context& self, scheduler_thread& s, context& w,
                                      handle h) noexcept {
    if (const handle own = self.self.load(base::relaxed); w.partner.get() != own) [[unlikely]] {
        // relaxed: its own.
        w.runner = &s;
        w.list.set(s.list_handle);
        w.partner.set(own);
    }
    self.partner.set(h);
    s.running = &w;
    self.switches.add(1);
    w.switches.add(1);
}

// Requires: a claim.
[[noreturn]] UMS_ALWAYS_INLINE void execute_in_user_mode(context& self, scheduler_thread& s,
                                                         context& w, handle h) noexcept {
    foresee(s, w);
    note_execution(self, s, w, h);
    w.seat.set(s.seat);
    s.seat->turns.add(1);
    // The last thing here: a detector may move the scheduler as soon as the worker is outside.
    arch::happens_before(&w);
    arch::continue_identity(w.registers, w.pointer, &w);
}

[[gnu::noinline]] int execute_slowly(handle h) noexcept {
    context* self = current;
    if (!is_scheduler(self)) return -EPERM;
    context* w = contexts.find(h);
    if (w == nullptr) return -EBADF;
    scheduler_thread& s = *self->scheduler.get();
    const bool in_user_mode = s.pointer != nullptr;
    s.turn = in_user_mode ? 0 : w->turn.get() + one_turn;
    const std::uint32_t inside = in_user_mode ? running : running | locked | s.turn;
    while (!claim(*w, inside))
        if (const int why = refusal(*w); why != 0) return why;
    if (measuring()) measure_switch(s, *w);
    if (in_user_mode) execute_in_user_mode(*self, s, *w, h);
    note_execution(*self, s, *w, h);
    w->turn.set(s.turn);
    arch::happens_before(w);
    s.reason = arrival_reason::hand_over;
    land_again(s.base);
}

}  // namespace

void worker_left(scheduler_thread& s, context& w) noexcept {
    arch::happens_after(&w);
    s.running = nullptr;
    if (measuring()) measure_leaving(s, w);
}

void measure(bool on) noexcept {
    // relaxed: see measuring().
    measured_from.store(on ? static_cast<std::uint64_t>(os::now()) : 0, base::relaxed);
}

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
    static const bool from_start = (rt::environment::times() ? measure(true) : void(), true);
    (void)from_start;
    s.pointer = mode() == switch_mode::user ? arch::thread_pointer() : nullptr;
    if (s.pointer != nullptr) {
        s.current_offset = reinterpret_cast<char*>(&current) - static_cast<char*>(s.pointer);
        s.errno_offset = reinterpret_cast<char*>(&errno) - static_cast<char*>(s.pointer);
    }
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
    scheduler_thread* s = self != nullptr ? self->scheduler.get() : nullptr;
    if (s == nullptr) return execute_slowly(h);
    context* w = s->expected;
    if (w == nullptr || w->self.load(base::acquire) != h) [[unlikely]]
        w = contexts.find(h);
    // As in activate().
    if (w == nullptr || s->pointer == nullptr || measuring() || !claim(*w, running)) [[unlikely]]
        return execute_slowly(h);
    execute_in_user_mode(*self, *s, *w, h);
}

int leave_procedure() noexcept {
    if (!is_scheduler(current)) return -EPERM;
    scheduler_thread& s = *current->scheduler.get();
    s.reason = arrival_reason::leave;
    land_again(s.base);
}

}  // namespace ums::scheduling
