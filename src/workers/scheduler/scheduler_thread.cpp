// SPDX-License-Identifier: MIT
#include "workers/scheduler/scheduler_thread.hpp"

#include <cerrno>
#include <unistd.h>

#include "arch/x86_64/thread_pointer.hpp"
#include "os/clock.hpp"
#include "os/futex.hpp"
#include "runtime/environment.hpp"
#include "sched/run/here.hpp"
#include "workers/left/stray.hpp"
#include "workers/scheduler/stats_files.hpp"
#include "workers/worker/availability.hpp"
#include "workers/worker/totals.hpp"
#include "workers/worker/worker_thread.hpp"

namespace ums::scheduling {

namespace {

// When measuring began; 0: nothing is measured. If a worker or a scheduler holds an older time,
// that is from an earlier measurement.
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

// What the procedure is called with.
struct message {
    ums_reason_t reason;
    std::uintptr_t payload;
    void* parameter;
    bool is_none = false;  // The procedure is not called: it wants to be done.
};

UMS_ALWAYS_INLINE message after_yield(scheduler_thread& s, context& w) noexcept {
    s.self->count.yields.add(1);
    // relaxed: the worker is alive, so its handle does not change.
    const handle yielded = w.self.load(base::relaxed);
    w.state.yielded();
    // A caller that orders an end stores the order, then looks at the state. This is the light side
    // of the argument in os/cpu/membarrier.hpp, and terminate_worker() is the heavy side: one of
    // them sees what the other stored, and ends the worker.
    if (s.own_seat.is_asymmetric) [[likely]]
        base::compiler_fence();
    else
        base::full_fence();
    // relaxed: the fences order.
    if ((w.control.load(base::relaxed) & killed) != 0) [[unlikely]]
        end_if_killed(w);
    return {UMS_REASON_YIELD, yielded, s.argument};
}

// Slow path: any arrival but a plain yield.
[[gnu::noinline]] message after_anything(scheduler_thread& s) noexcept {
    if (s.seat != &s.own_seat) return_to_own_seat(s, false);
    context* w = s.running;
    UMS_ASSERT(s.self->scheduler.get() == &s, "a scheduler that is not entered lands");
    UMS_ASSERT((w != nullptr) ==
                   (s.reason == arrival_reason::yield || s.reason == arrival_reason::blocked),
               "a worker gives its scheduler back by yielding or by going home");
    switch (s.reason) {
        case arrival_reason::yield:
            worker_left(s, *w);
            return after_yield(s, *w);
        case arrival_reason::blocked:
            worker_left(s, *w);
            s.self->count.syscalls.add(1);
            // sync(ums.state): publishes the saved registers to the home, with the order.
            w->state.set(blocked, base::release);
            arch::happens_before(w);
            order_home(*w, run);
            return {UMS_REASON_BLOCKED, 1, nullptr};
        case arrival_reason::lost:
            return {UMS_REASON_BLOCKED, s.payload, nullptr};
        case arrival_reason::startup:
            return {UMS_REASON_STARTUP, 0, s.parameter};
        default:
            return {.reason = 0, .payload = 0, .parameter = nullptr, .is_none = true};
    }
}

// Calls the procedure. There is only one place that does, so it always runs at the same depth. Not
// noexcept: pthread_exit() in the procedure unwinds through it.
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
        UMS_ASSERT(s_.seat == &s_.own_seat, "a scheduler leaves on its own kernel thread");
        UMS_ASSERT(s_.running == nullptr, "a scheduler leaves while a worker runs");
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

// Waits until a worker that is on its way home has arrived there, or is no longer owned.
void wait_until_parked(context& w) noexcept {
    for (int i = 0; i < 200; ++i) {
        if ((w.state.look() & locked) == 0) return;
        base::spin_pause();
    }
    const std::uint32_t seen = w.state.look();
    if ((seen & ~std::uint32_t{awaited}) == (owned | locked)) w.state.wait_while_locked(seen);
}

// Returns why the worker cannot be executed now; 0: try again.
int refusal(context& w) noexcept {
    const std::uint32_t seen = w.state.look_for_state();
    // relaxed: the value is only advice.
    const std::uint32_t control = w.control.load(base::relaxed);
    if (seen == none || seen == terminated) return -ESRCH;
    if (seen == running) return -EBUSY;
    if ((control & killed) != 0) {
        end_if_killed(w);
        return -ESRCH;  // This holds also while the worker is on its way to its end.
    }
    if (seen != owned) return seen == held && control != 0 ? -EACCES : -EBUSY;
    if (control != 0) return -EACCES;
    wait_until_parked(w);
    return 0;  // The worker may have been terminated meanwhile; the next look finds out.
}

// Prefetches the two lines of the context, the worker's frames, its `current` and what the C
// library has in its TLS block.
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

// With hundreds of workers, what the next one touches first has left the cache. Most schedulers
// execute the same worker after `w` as the last time. So this fetches that one now, a whole yield
// before it is needed.
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

// The caller has claimed another worker than the one it meant.
[[gnu::noinline, gnu::cold]] void unclaim(context& w) noexcept {
    w.state.set(owned, base::release);  // sync(ums.state): as before the claim.
    base::full_fence();  // An end ordered meanwhile saw it running: see after_yield().
    end_if_killed(w);
}

// Whether the claimed worker is the one that the caller found by this handle. If not, that one's
// context has been destroyed since, and another one lies there. While a worker is claimed, nobody
// can destroy its context.
UMS_ALWAYS_INLINE bool has_claimed(context& w, handle h) noexcept {
    if (w.self.load(base::relaxed) == h) [[likely]]  // relaxed: claim() orders.
        return true;
    unclaim(w);
    return false;
}

UMS_ALWAYS_INLINE bool claim(context& w) noexcept {
    std::uint32_t seen = owned;
    // relaxed: a suspension or an end that comes later takes effect later.
    if (w.control.load(base::relaxed) != 0 ||
        // sync(ums.state): sees the saved registers.
        !w.state.change(seen, running, base::acquire))
        return false;
    // The home publishes the registers by code that is not instrumented.
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
[[noreturn]] UMS_ALWAYS_INLINE void execute_claimed(context& self, scheduler_thread& s, context& w,
                                                    handle h) noexcept {
    foresee(s, w);
    note_execution(self, s, w, h);
    w.seat.set(s.seat);
    s.seat->turns.add(1);
    // This comes last: a detector may move the scheduler as soon as the worker is outside.
    arch::happens_before(&w);
    arch::continue_identity(w.registers, w.pointer, &w);
}

[[gnu::noinline]] int execute_slowly(handle h) noexcept {
    context* self = current;
    if (!is_scheduler(self)) return -EPERM;
    context* w = contexts.find(h);
    if (w == nullptr) return -EBADF;
    scheduler_thread& s = *self->scheduler.get();
    while (!claim(*w))
        if (const int why = refusal(*w); why != 0) return why;
    if (!has_claimed(*w, h)) return -EBADF;
    if (measuring()) measure_switch(s, *w);
    execute_claimed(*self, s, *w, h);
}

}  // namespace

void worker_left(scheduler_thread& s, context& w) noexcept {
    UMS_ASSERT(s.running == &w, "a worker leaves a scheduler that does not run it");
    arch::happens_after(&w);
    s.running = nullptr;
    if (measuring()) measure_leaving(s, w);
}

void measure(bool on) noexcept {
    // relaxed: see measuring().
    measured_from.store(on ? static_cast<std::uint64_t>(os::now()) : 0, base::relaxed);
}

int enter(const ums_scheduler_options_t& options) {
    if (current != nullptr || sched::here{}.self != nullptr) return -EPERM;
    if (const int failed = require_switching(); failed != 0) return failed;
    scheduler_thread s;
    s.list = use_list(options.list);
    if (s.list == nullptr) return -EBADF;
    if (create_context(s.self) != 0) {
        leave_list(*s.list);
        return -ENOMEM;
    }
    static const bool from_start = (rt::environment::times() ? measure(true) : void(), true);
    (void)from_start;
    s.pointer = arch::thread_pointer();
    s.current_offset = reinterpret_cast<char*>(&current) - static_cast<char*>(s.pointer);
    s.errno_offset = reinterpret_cast<char*>(&errno) - static_cast<char*>(s.pointer);
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
    if (w == nullptr || measuring() || !claim(*w)) [[unlikely]]
        return execute_slowly(h);
    if (!has_claimed(*w, h)) [[unlikely]]
        return -EBADF;
    execute_claimed(*self, *s, *w, h);
}

int leave_procedure() noexcept {
    if (!is_scheduler(current)) return -EPERM;
    scheduler_thread& s = *current->scheduler.get();
    UMS_ASSERT(s.running == nullptr, "a scheduler whose worker runs is not in its procedure");
    s.reason = arrival_reason::leave;
    land_again(s.base);
}

}  // namespace ums::scheduling
