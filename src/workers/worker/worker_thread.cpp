// SPDX-License-Identifier: MIT
#include "workers/worker/worker_thread.hpp"

#include <cerrno>
#include <cxxabi.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "arch/x86_64/thread_pointer.hpp"
#include "os/cpu/membarrier.hpp"
#include "os/futex.hpp"
#include "os/system.hpp"
#include "sched/run/park.hpp"
#include "workers/left/crossing.hpp"
#include "workers/left/stop_point.hpp"
#include "workers/scheduler/seat.hpp"
#include "workers/worker/availability.hpp"
#include "workers/worker/home.hpp"
#include "workers/worker/totals.hpp"

namespace ums::scheduling {

constinit worker_table workers;
constinit process_totals totals;

namespace {

constexpr std::size_t page = 4096, least_stack = 32 * 1024, most_stack = std::size_t{1} << 30;
constexpr std::size_t usual_stack = std::size_t{1} << 20;

// The gap at the top, between the home's frames and the worker's: room for what the home calls and
// for the frame of one signal.
std::size_t gap() noexcept {
    const std::size_t frame = ::getauxval(AT_MINSIGSTKSZ);
    return (3 * page + (frame != 0 ? frame : page) + page - 1) / page * page;
}

// Tops at equal offsets within a page would all compete for the same sets of the L1 cache, and TLS
// blocks at equal distances for the same sets of the L2 cache and the TLB. This varies both.
std::size_t colour_bytes(unsigned colour) noexcept { return colour * 7 % 48 * std::size_t{64}; }
std::size_t colour_pages(unsigned colour) noexcept { return colour % 31 * page; }

// From here on no thread gets its context by its handle.
void withdraw(worker_thread& t, handle h) noexcept {
    const os::lock_guard hold{t.lock};
    workers.withdraw(t, h);
}

void drop(worker_thread& t) noexcept {
    // sync(ums.thread): the last holder sees what the other did.
    const std::uint32_t holders = t.holders.fetch_sub(1, base::acq_rel);
    UMS_ASSERT(holders != 0, "a worker has no holder");
    if (holders == 1) workers.give(t);
}

// The worker's last act, on its own kernel thread. After it, any thread may take the context.
void finish(worker_thread& t) noexcept {
    context& c = *t.scheduled;
    c.at_home = true;  // Set here too, because the worker may never have run.
    {
        const os::lock_guard hold{t.lock};
        t.is_ending = true;
    }
    if (t.ended != nullptr) t.ended(t.ended_argument, t.exit_code.get());
    current = nullptr;
    const handle last = c.list.get();
    completion_list* first = t.list;
    c.thread.set(nullptr);
    UMS_ASSERT(c.seat.get() == nullptr || c.critical == 0, "a worker ends in a critical region");
    totals.worker_ended();
    // sync(ums.thread): publishes the exit code.
    t.has_ended.store(true, base::release);
    completion_list* list = lists.find(last);
    if (list == nullptr) list = first;
    leave_list(*first);
    std::uint32_t seen = c.state.look();
    // sync(ums.state): publishes all the worker did to a thread that finds it terminated.
    while (!c.state.change(seen, terminated | listed, base::acq_rel)) {
    }
    if ((seen & listed) == 0 && !push(*list, c))
        // sync(ums.state): no list is notified; the worker's end is found only by polling.
        c.state.set(terminated, base::release);
}

// Runs the worker's function. pthread_exit() and cancellation unwind through it.
void run_worker(worker_thread& t) {
    context& c = *t.scheduled;
    try {
        t.exit_code.set(t.function(t.argument));
    }
#if defined(__GLIBCXX__)
    catch (abi::__forced_unwind&) {
        // The C library ends the kernel thread that runs this: it must be the worker's own.
        if (!c.at_home) go_home(c);
        finish(t);
        drop(t);
        throw;
    }
#else
    catch (...) {
        throw;
    }
#endif
    if (!c.at_home) go_home(c);
}

// Not in worker_entry(), whose frame exists as long as the worker.
UMS_CROSSING void come_out_first(context& c) noexcept { come_out(c); }

// The first thing on the worker's own part of the stack.
void worker_entry(void*, void*, void* argument) {
    auto& t = *static_cast<worker_thread*>(argument);
    arch::happens_after(t.scheduled);
    come_out_first(*t.scheduled);
    run_worker(t);
    end_here(*t.scheduled);
}

[[gnu::noinline]] void live(worker_thread& t) noexcept {
    context& c = *t.scheduled;
    c.pointer = arch::thread_pointer();
    unregister_rseq();
    auto top = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) - gap();
    top = (top & ~std::uintptr_t{63}) - colour_bytes(t.colour);
    arch::make_context(c.registers, reinterpret_cast<void*>(top), &worker_entry, &t);
    t.stack_top = reinterpret_cast<void*>(top);
    arch::happens_before(&c);
    if (!become_available(c)) return;  // The worker was terminated before it was ever queued.
    home_loop(c);
    arch::happens_after(&c);
    arch::unpoison(reinterpret_cast<void*>(c.registers.sp),
                   top - reinterpret_cast<std::uintptr_t>(c.registers.sp));
}

void* start(void* argument) {
    auto& t = *static_cast<worker_thread*>(argument);
    current = t.scheduled;
    t.scheduled->tid.set(::gettid());
    // sync(ums.thread): publishes the id to callers that ask for it.
    t.tid.store(static_cast<std::uint32_t>(::gettid()), base::release);
    os::futex_wake(t.tid.address(), 0x7fffffff);
    live(t);
    finish(t);
    auto* result = reinterpret_cast<void*>(t.exit_code.get());
    unmask_signals(t);
    drop(t);
    return result;
}

int start_thread(worker_thread& t) noexcept {
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) return -ENOMEM;
    int failed = pthread_attr_setstacksize(
        &attributes, t.stack_bytes + gap() + 2 * page + colour_pages(t.colour));
    // The home starts with its signals blocked; the worker has its creator's mask.
    mask_signals(t);
    const std::uint64_t before = t.signals;
    if (failed == 0) failed = pthread_create(&t.id, &attributes, &start, &t);
    // From here on `t` belongs to the thread, and may already belong to another worker.
    os::system.signal_mask(&before, nullptr);
    pthread_attr_destroy(&attributes);
    return -failed;
}

// Takes a context for a new worker. Returns the state before, or a negative error number.
int attach(context& c) noexcept {
    for (const std::uint32_t before : {std::uint32_t{none}, std::uint32_t{terminated}}) {
        std::uint32_t seen = before;
        // sync(ums.state): sees that its last worker no longer uses it.
        if (c.state.change(seen, held | locked, base::acquire)) return static_cast<int>(before);
    }
    return -EBUSY;
}

// The same, by the handle by which the caller found it. Another thread may have destroyed the
// context since, and made another one there. From attach() on, none can.
int attach(context& c, handle h) noexcept {
    const int before = attach(c);
    // relaxed: attach() orders. The destroyer changes the state before it withdraws the handle.
    if (c.self.load(base::relaxed) == h) return before;
    // sync(ums.state): restores the state it had before.
    if (before >= 0) c.state.set(static_cast<std::uint32_t>(before), base::release);
    return -EBADF;
}

constinit base::atomic<unsigned> next_colour{0};

// A worker that waits in one of libums's own primitives, where it counts as a plain thread,
// announces that it blocks.
constexpr sched::plain_wait announced{[]() noexcept { ums_worker_blocking_enter(); },
                                      []() noexcept { ums_worker_blocking_leave(); }};

bool is_valid(const ums_worker_options_t& options) noexcept {
    return options.list != 0 && (options.stack_bytes == 0 || (options.stack_bytes >= least_stack &&
                                                              options.stack_bytes <= most_stack));
}

}  // namespace

bool is_first_frame(const void* function) noexcept {
    return function == reinterpret_cast<const void*>(&worker_entry);
}

int create_worker(handle& made, const ums_worker_options_t& options, ums_worker_function_t function,
                  void* argument) noexcept {
    if (!is_valid(options) || function == nullptr) return -EINVAL;
    if (const int failed = require_switching(); failed != 0) return failed;
    // sync(park.announce)
    sched::on_plain_wait.store(&announced, base::release);
    completion_list* list = use_list(options.list);
    if (list == nullptr) return -EBADF;
    context* c = nullptr;
    int failed = 0;
    if (options.context == 0) {
        failed = create_context(c);
    } else if ((c = contexts.find(options.context)) == nullptr || is_scheduler(c)) {
        failed = -EBADF;
    }
    // relaxed: made here.
    const handle of = options.context != 0 ? options.context : c->self.load(base::relaxed);
    const int before = failed == 0 ? attach(*c, of) : failed;
    worker_thread* t = before >= 0 ? workers.take() : nullptr;
    handle own = 0;
    if (before >= 0 && t == nullptr) failed = -ENOMEM;
    if (before < 0) failed = before;
    if (failed == 0) {
        c->control.store(options.suspended ? 1 : 0,
                         base::relaxed);  // relaxed: the thread's start orders this.
        c->runner = nullptr;
        c->seat.set(nullptr);
        c->deferrals = 0;
        c->list.set(options.list);
        c->partner.set(0);
        c->critical = c->blocking = 0;
        c->at_home = c->has_ended = false;
        c->home.store(stay, base::relaxed);  // relaxed: as above.
        t->function = function;
        t->argument = argument;
        t->ended = options.ended;
        t->ended_argument = options.ended_argument;
        t->list = list;
        t->scheduled = c;
        t->scheduled_handle = of;
        t->colour = next_colour.fetch_add(1, base::relaxed);  // relaxed: any value will do.
        t->stack_bytes =
            options.stack_bytes != 0 ? (options.stack_bytes + page - 1) / page * page : usual_stack;
        t->exit_code.set(0);
        // relaxed, all: published by the handle and by the thread's start.
        t->tid.store(0, base::relaxed);
        t->has_ended.store(false, base::relaxed);
        t->is_joined.store(false, base::relaxed);
        t->holders.store(2, base::relaxed);
        {
            const os::lock_guard hold{t->lock};
            t->is_ending = false;
            c->thread.set(t);
        }
        own = workers.publish(*t);  // Before it can run and ask for its handle.
        // Also before a scheduler takes the worker from its list, which may be faster than this
        // thread.
        made = own;
        failed = start_thread(*t);
        if (failed != 0) {
            made = 0;
            withdraw(*t, own);
            c->thread.set(nullptr);
            workers.give(*t);
        }
    }
    if (failed != 0) {
        // sync(ums.state): restores the state it had before.
        if (before >= 0) c->state.set(static_cast<std::uint32_t>(before), base::release);
        if (options.context == 0 && c != nullptr)
            (void)destroy_context(c->self.load(base::relaxed));
        leave_list(*list);
        return failed;
    }
    totals.worker_made();
    return 0;
}

namespace {

// Whoever gets 0 is the one that joins or detaches the worker: nobody else withdraws its handle.
int claim_end(worker_thread& t, handle h) noexcept {
    const os::lock_guard hold{t.lock};
    if (t.self.load(base::relaxed) != h) return -EBADF;  // relaxed: changed under the lock.
    return t.is_joined.exchange(true, base::relaxed) ? -EINVAL : 0;  // relaxed: the lock orders.
}

}  // namespace

int join_worker(handle h, std::intptr_t* exit_code) {
    worker_thread* t = workers.find(h);
    if (t == nullptr) return -EBADF;
    if (is_worker(current) && current->thread.get() == t) return -EDEADLK;
    if (const int refused = claim_end(*t, h); refused != 0) return refused;
    void* result = nullptr;
    ums_worker_blocking_enter();
    const int failed = pthread_join(t->id, &result);
    if (failed == 0) {
        withdraw(*t, h);
        drop(*t);
    } else {
        t->is_joined.store(false, base::relaxed);  // relaxed: as above.
    }
    ums_worker_blocking_leave();  // Does not return if the caller was terminated meanwhile.
    if (failed == 0 && exit_code != nullptr) *exit_code = reinterpret_cast<std::intptr_t>(result);
    return -failed;
}

int detach_worker(handle h) noexcept {
    worker_thread* t = workers.find(h);
    if (t == nullptr) return -EBADF;
    if (const int refused = claim_end(*t, h); refused != 0) return refused;
    withdraw(*t, h);
    pthread_detach(t->id);
    drop(*t);
    return 0;
}

int exit_code_of(handle h, std::intptr_t* exit_code) noexcept {
    worker_thread* t = workers.find(h);
    if (t == nullptr) return -EBADF;
    // sync(ums.thread): sees the exit code.
    const bool has_ended = t->has_ended.load(base::acquire);
    const std::intptr_t code = t->exit_code.get();
    if (!workers.still_has(*t, h)) return -EBADF;
    if (!has_ended) return -EBUSY;
    if (exit_code != nullptr) *exit_code = code;
    return 0;
}

int tid_of(handle h) noexcept {
    worker_thread* t = workers.find(h);
    if (t == nullptr) return 0;
    for (;;) {
        // sync(ums.thread): sees the id that the thread itself wrote.
        const std::uint32_t tid = t->tid.load(base::acquire);
        if (!workers.still_has(*t, h)) return 0;
        if (tid != 0) return static_cast<int>(tid);
        os::futex_wait(t->tid, 0);
    }
}

void order_home(context& c, home_order order) noexcept {
    UMS_ASSERT(order != stay, "a home stays without an order");
    // sync(ums.home): publishes the worker, and its scheduler's past, to its kernel thread.
    const std::uint32_t before = c.home.exchange(order, base::release);
    UMS_ASSERT(before == stay, "a home gets one order at a time");
    os::futex_wake(c.home.address());
}

namespace {

// If the worker is parked and no scheduler executes it, sends its thread to its end. Requires: the
// lock.
void end_parked(context& c) noexcept {
    std::uint32_t seen = c.state.look();
    for (;;) {
        const std::uint32_t now = seen & state_mask;
        if (now != held && now != queued && now != owned) return;
        // sync(ums.state): sees the saved registers, which will not be used.
        if (c.state.change(seen, (seen & ~std::uint32_t{state_mask}) | blocked, base::acq_rel))
            break;
    }
    arch::happens_before(&c);
    order_home(c, end);
}

// Calls act(worker, context) under the worker's lock while the worker lives; otherwise returns the
// error.
template <class Act>
int with_live(handle h, Act act) noexcept {
    worker_thread* t = workers.find(h);
    if (t == nullptr) return -EBADF;
    const os::lock_guard hold{t->lock};
    if (t->self.load(base::relaxed) != h) return -EBADF;  // relaxed: changed under the lock.
    return t->is_ending ? -ESRCH : act(*t, *t->scheduled);
}

bool is_caller(handle h) noexcept { return h != 0 && ums_worker_current() == h; }

}  // namespace

void end_if_killed(context& c) noexcept {
    worker_thread* t = c.thread.get();
    if (t == nullptr) return;
    const os::lock_guard hold{t->lock};
    // The worker may have ended, and another may have been made for the context: the call does not
    // mean that one.
    if (t->is_ending || c.thread.get() != t) return;
    // relaxed: the lock orders, or the argument of after_yield() holds.
    if ((c.control.load(base::relaxed) & killed) != 0) end_parked(c);
}

int suspend_worker(handle h, unsigned* previous) noexcept {
    const int failed = with_live(h, [previous](worker_thread&, context& c) {
        std::uint32_t seen = c.control.load(base::relaxed);
        do {
            if ((seen & ~killed) == most_suspensions) return -EOVERFLOW;
            // The argument of crossing.cpp asks for this order.
        } while (!c.control.compare_exchange(seen, seen + 1, base::seq_cst, base::relaxed));
        if (previous != nullptr) *previous = seen & ~killed;
        return 0;
    });
    context* self = current;
    if (failed == 0 && is_caller(h) && self->critical == 0 && self->blocking == 0) {
        go_home(*self);
        come_back(*self);
    }
    return failed;
}

int resume_worker(handle h, unsigned* previous) noexcept {
    return with_live(h, [previous](worker_thread&, context& c) {
        std::uint32_t seen = c.control.load(base::relaxed);
        do {
            if ((seen & ~killed) == 0) return -EINVAL;
            // The argument of crossing.cpp asks for this order.
        } while (!c.control.compare_exchange(seen, seen - 1, base::seq_cst, base::relaxed));
        if (previous != nullptr) *previous = seen & ~killed;
        if (seen == 1) queue_if_held(c);
        return 0;
    });
}

int terminate_worker(handle h, std::intptr_t exit_code) noexcept {
    if (is_caller(h)) return ums_worker_exit(exit_code);
    return with_live(h, [exit_code](worker_thread& t, context& c) {
        t.exit_code.set(exit_code);
        // The argument of crossing.cpp asks for this order.
        c.control.fetch_or(killed, base::seq_cst);
        os::heavy_fence();  // See after_yield().
        end_parked(c);
        return 0;
    });
}

}  // namespace ums::scheduling
