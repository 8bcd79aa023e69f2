// SPDX-License-Identifier: MIT
#include "io/away/offload.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cxxabi.h>
#include <list>
#include <mutex>
#include <new>
#include <optional>
#include <pthread.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "base/assert.hpp"
#include "base/atomic.hpp"
#include "os/clock.hpp"
#include "os/cpu/topology.hpp"
#include "os/thread/at_rest.hpp"
#include "os/thread/slice.hpp"
#include "os/thread/thread_state.hpp"
#include "sched/fiber/wait.hpp"
#include "sched/run/park.hpp"
#include "sched/run/wake.hpp"

namespace ums::io {

namespace {

// Calls wait in lanes, so that those of one kind hold up no other. A lane lets so many calls run at
// once as the limit says, and starts them in order of arrival. libums's own calls may wait for each
// other (a FIFO is opened for reading by one, and for writing by another), so a lane of them must
// not come to a standstill: a call that has been asleep in the kernel for some time no longer
// counts. So does one of the program's, after longer, unless the program has set the limit. A
// look-up of a name waits for no other.
//
// A thread that takes a call and leaves no thread idle starts the next one before it makes the
// call. So threads of the pool are started by threads of the pool, and the first one by the thread
// that starts the runtime. None inherits anything from a carrier: neither the CPU that it is pinned
// to, nor its scheduler slice, nor the detector's counting. And no fiber waits while the kernel
// makes a thread, except at the limit. A thread that ends joins the one that ended before it.
//
// While calls wait in a lane that may grow, one idle thread, the watch, looks from time to time
// which of the running calls are asleep.
//
// Fibers hold the mutex for a few instructions only, never across a switch.
struct lane {
    offload_task* first = nullptr;
    offload_task** last = &first;
    unsigned queued = 0;
    unsigned busy = 0;     // Calls of this lane under way,
    unsigned excused = 0;  // and those of them that no longer count.
};

struct pool_thread {
    std::thread handle;
    // Guarded by the mutex:
    int tid = 0;
    std::uint64_t id = 0;    // In the order of the list.
    lane* in = nullptr;      // Of the call under way.
    std::uint64_t call = 0;  // Which one that is.
    bool is_excused = false;
    os::nanoseconds asleep_since = 0;  // 0: it was awake, or was not looked at.
};

constexpr unsigned most_threads = 4096;
constexpr std::size_t kinds = 3;

struct pool {
    std::mutex mutex;
    std::condition_variable work;
    lane lanes[kinds];
    lane& at(call_kind k) noexcept { return lanes[static_cast<std::size_t>(k)]; }
    std::list<pool_thread> threads;
    std::thread ended;  // The last thread that ended, to be joined.
    unsigned idle = 0;  // Includes threads that were started but have not run yet.
    std::uint64_t last_id = 0;
    bool has_limit = false;  // The program has set it.
    bool is_watched = false;
    bool is_stopping = false;
    pool* parents = nullptr;  // Of the process that this one is a fork() of. Never deleted.
    offload_statistics stats{
        .calls = 0, .waited = 0, .threads = 0, .busy = 0, .queued = 0, .most = 64};
};

pool*& place_of_pool() noexcept {
    // Never destroyed: threads may outlive main(). Not allocated: it is there without memory, too.
    alignas(pool) static std::byte place[sizeof(pool)];
    static pool* p = ::new (place) pool;
    return p;
}
pool& the_pool() noexcept { return *place_of_pool(); }

enum class starter : unsigned char { clean_thread, fiber };
void start_thread(pool& p, starter by);

// How many calls of the lane may run beside those that do.
unsigned room(const pool& p, const lane& l) noexcept {
    const unsigned counted = l.busy - l.excused;
    return counted < p.stats.most ? p.stats.most - counted : 0;
}

// Whether calls of the lane that are asleep cease to count.
bool may_grow(const pool& p, const lane& l) noexcept {
    if (p.stats.threads >= most_threads) return false;
    switch (static_cast<call_kind>(&l - p.lanes)) {
        case call_kind::ours:
            return true;
        case call_kind::programs:
            return !p.has_limit;
        case call_kind::name:
            break;
    }
    return false;
}

bool waits_for_room(const pool& p, const lane& l) noexcept {
    return l.queued != 0 && room(p, l) == 0 && may_grow(p, l);
}

// How many calls could begin now.
unsigned due(const pool& p) noexcept {
    unsigned n = 0;
    for (const lane& l : p.lanes) n += std::min(l.queued, room(p, l));
    return n;
}

// Null if none may begin. The kinds in order of arrival among themselves only: a call that may
// begin gets a thread soon.
offload_task* take(pool& p, pool_thread& self) noexcept {
    for (lane& l : p.lanes) {
        if (l.queued == 0 || room(p, l) == 0) continue;
        UMS_ASSERT(l.first != nullptr && p.stats.queued != 0, "the pool's queue has lost a call");
        offload_task* const task = l.first;
        l.first = task->next;
        if (l.first == nullptr) l.last = &l.first;
        --l.queued;
        --p.stats.queued;
        ++l.busy;
        self.in = &l;
        ++self.call;
        return task;
    }
    return nullptr;
}

void has_ended(pool_thread& self) noexcept {
    lane& l = *std::exchange(self.in, nullptr);
    --l.busy;
    if (std::exchange(self.is_excused, false)) --l.excused;
    self.asleep_since = 0;
    UMS_DEBUG_ASSERT(l.excused <= l.busy, "a call was excused that does not run");
}

// Keeps one thread idle, so that the next call finds one, or to be the watch. While the kernel
// refuses a new one, calls wait for the threads there are.
void replace_idle_thread(pool& p) noexcept {
    if (p.idle > due(p) || p.is_stopping || p.stats.threads >= most_threads) return;
    unsigned excused = 0;
    bool needs_more = p.idle < due(p);
    for (const lane& l : p.lanes) {
        excused += l.excused;
        needs_more |= waits_for_room(p, l);
    }
    if (!needs_more && p.stats.threads >= p.stats.most + excused) return;
    try {
        start_thread(p, starter::clean_thread);
    } catch (const std::exception&) {
    }
}

// A fiber calls this while all threads are busy: the kernel refused the one that should be idle
// now, or there are as many as the limit, and the call is of another kind or has to be waited for.
void start_what_was_refused(pool& p) {
    try {
        start_thread(p, starter::fiber);
    } catch (const std::exception&) {
        if (p.stats.threads == 0) throw;
    }
}

// Notes which calls are asleep in lanes where others wait, and excuses those that have been for
// long. Without /proc all seem asleep, and it takes longer. Releases the mutex meanwhile.
void look_at_busy_threads(pool& p, std::unique_lock<std::mutex>& lock) noexcept {
    struct {
        std::uint64_t id, call;
        int tid;
        bool is_asleep;
    } some[64];
    os::thread_states states;
    std::uint64_t last = 0;
    lock.unlock();
    const bool can_look = states.open() == 0;
    for (;;) {
        std::size_t n = 0;
        lock.lock();
        for (const pool_thread& t : p.threads)
            if (n < std::size(some) && t.id > last && t.in != nullptr && !t.is_excused &&
                waits_for_room(p, *t.in))
                some[n++] = {t.id, t.call, t.tid, true};
        if (n == 0) return;
        lock.unlock();
        last = some[n - 1].id;
        if (can_look)
            for (std::size_t i = 0; i < n; ++i) some[i].is_asleep = states.is_asleep(some[i].tid);
        const os::nanoseconds now = os::now();
        lock.lock();
        std::size_t i = 0;
        for (pool_thread& t : p.threads) {
            while (i < n && some[i].id < t.id) ++i;
            // Not if it was in another call when it was looked at.
            if (i == n || some[i].id != t.id || some[i].call != t.call || t.in == nullptr) continue;
            if (!some[i].is_asleep) {
                t.asleep_since = 0;
            } else if (t.asleep_since == 0) {
                t.asleep_since = now;
            } else {
                // relaxed: only tests change it.
                const os::nanoseconds ours = offload_pool::asleep_ns.load(base::relaxed);
                const bool is_ours = t.in == &p.at(call_kind::ours);
                const os::nanoseconds patience = is_ours && can_look ? ours : 100 * ours;
                if (now - t.asleep_since < patience || !may_grow(p, *t.in)) continue;
                t.is_excused = true;
                ++t.in->excused;
            }
        }
        lock.unlock();
    }
}

// Returns null if the calling thread is to end.
offload_task* wait_for_work(pool& p, std::unique_lock<std::mutex>& lock, pool_thread& self) {
    // relaxed, both: only tests change the limits.
    const std::chrono::nanoseconds limit{offload_pool::idle_ns.load(base::relaxed)};
    const std::chrono::nanoseconds patience{offload_pool::asleep_ns.load(base::relaxed)};
    for (;;) {
        if (offload_task* const task = take(p, self)) return task;
        if (p.is_stopping && p.stats.queued == 0) return nullptr;
        const bool is_for_ours = waits_for_room(p, p.at(call_kind::ours));
        if (!p.is_watched && (is_for_ours || waits_for_room(p, p.at(call_kind::programs)))) {
            p.is_watched = true;
            const auto next_look = is_for_ours ? patience : 10 * patience;
            if (p.work.wait_for(lock, next_look) == std::cv_status::timeout)
                look_at_busy_threads(p, lock);
            p.is_watched = false;
        } else if (p.idle == 1) {
            p.work.wait(lock);  // The last one stays.
        } else if (p.work.wait_for(lock, limit) == std::cv_status::timeout && p.idle > 1 &&
                   due(p) == 0) {
            return nullptr;
        }
    }
}

void work(std::list<pool_thread>::iterator self) noexcept {
    pool& p = the_pool();
    std::optional<os::at_rest> rests{std::in_place};
    std::unique_lock lock{p.mutex};
    self->tid = ::gettid();
    while (offload_task* const task = wait_for_work(p, lock, *self)) {
        rests.reset();
        UMS_DEBUG_ASSERT(p.idle != 0, "a thread took a call without having been idle");
        --p.idle;
        ++p.stats.busy;
        replace_idle_thread(p);
        // Several may have become due at once; and the watch may have been this thread.
        if (p.stats.queued != 0 && p.idle != 0) p.work.notify_one();
        lock.unlock();
        task->run(*task);
        lock.lock();
        rests.emplace();
        UMS_DEBUG_ASSERT(p.idle + p.stats.busy == p.stats.threads,
                         "a thread of the pool is neither idle nor busy");
        --p.stats.busy;
        ++p.idle;
        has_ended(*self);
    }
    UMS_ASSERT(p.idle != 0 && p.stats.threads != 0, "the pool has miscounted its threads");
    --p.idle;
    --p.stats.threads;
    if (p.is_stopping) {
        p.work.notify_all();  // Others wait until nothing is queued.
        return;
    }
    std::thread before = std::exchange(p.ended, std::move(self->handle));
    p.threads.erase(self);
    lock.unlock();
    if (before.joinable()) before.join();  // It has finished its work.
}

void start_thread(pool& p, starter by) {
    const auto at = p.threads.emplace(p.threads.end());
    at->id = ++p.last_id;
    // A signal sent to the process then goes to the program's own threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        at->handle = std::thread{[at, by] {
            if (by == starter::fiber) {
                os::unpin_this_thread();  // The carrier may be pinned.
                os::forget_slice();
            }
            pthread_setname_np(pthread_self(), "ums offload");
            work(at);
        }};
    } catch (...) {
        p.threads.erase(at);
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    ++p.stats.threads;
    ++p.idle;
}

struct waiting_call : offload_task {
    void (*function)(void*);
    void* argument;
    sched::parkable* who;
};

}  // namespace

void offload_pool::start() noexcept {
    pool& p = the_pool();
    const std::lock_guard lock{p.mutex};
    UMS_DEBUG_ASSERT(!p.is_stopping, "the pool was started while it stops");
    replace_idle_thread(p);
}

void offload_pool::submit(offload_task& task) {
    pool& p = the_pool();
    UMS_DEBUG_ASSERT(task.run != nullptr, "a call was off-loaded that has no function");
    {
        const std::lock_guard lock{p.mutex};
        lane& l = p.at(task.kind);
        UMS_DEBUG_ASSERT(*l.last == nullptr && (l.first == nullptr) == (l.queued == 0),
                         "the pool's queue does not end where its last call is");
        const bool is_due = l.queued < room(p, l);
        if (p.idle == 0 && p.stats.threads < most_threads &&
            (is_due || may_grow(p, l) || p.stats.threads == 0))
            start_what_was_refused(p);
        if (!is_due) ++p.stats.waited;
        task.next = nullptr;
        *l.last = &task;
        l.last = &task.next;
        ++l.queued;
        ++p.stats.queued;
        ++p.stats.calls;
    }
    p.work.notify_one();
}

void offload_pool::call(call_kind kind, void (*run)(void*), void* argument) {
    waiting_call call;
    call.kind = kind;
    call.run = [](offload_task& task) noexcept {
        auto& c = static_cast<waiting_call&>(task);
        sched::parkable* who = c.who;
        try {
            c.function(c.argument);
        }
#if defined(__GLIBCXX__)
        catch (const abi::__forced_unwind&) {
            std::fputs(
                "ums: pthread_exit(), or a cancellation of the kernel thread, in a function "
                "of ums::offload(): that thread is the pool's. Return from the function\n",
                stderr);
            std::abort();
        }
#else
        catch (...) {
            throw;
        }
#endif
        sched::wake(*who);
    };
    call.function = run;
    call.argument = argument;
    call.who = &sched::this_parkable();
    UMS_DEBUG_ASSERT(call.who->is_fiber, "a plain thread off-loads a call that it could make");
    submit(call);
    const sched::wait now{*call.who, sched::wait_kind::offload, nullptr};
    sched::park(sched::park_kind::internal);
}

void offload_pool::stop() noexcept {
    pool& p = the_pool();
    std::list<pool_thread> all;
    std::thread ended;
    {
        const std::lock_guard lock{p.mutex};
        p.is_stopping = true;
        all.swap(p.threads);
        ended.swap(p.ended);
    }
    p.work.notify_all();
    if (ended.joinable()) ended.join();
    for (pool_thread& t : all) t.handle.join();
    const std::lock_guard lock{p.mutex};
    UMS_ASSERT(p.stats.queued == 0 && p.idle == 0 && p.stats.threads == 0 && p.stats.busy == 0,
               "the pool has stopped with calls or threads left");
    p.is_stopping = false;
    p.stats.calls = p.stats.waited = 0;
}

// The old one stays as it is: its mutex may be held by a thread that is not there.
void offload_pool::leave_behind() {
    auto* const made = new pool;
    made->parents = place_of_pool();
    made->stats.most = made->parents->stats.most;
    made->has_limit = made->parents->has_limit;
    place_of_pool() = made;
}

}  // namespace ums::io

namespace ums {

offload_statistics offload_stats() noexcept {
    auto& p = io::the_pool();
    const std::lock_guard lock{p.mutex};
    return p.stats;
}

void set_offload_limit(unsigned threads) noexcept {
    auto& p = io::the_pool();
    const std::lock_guard lock{p.mutex};
    p.stats.most = std::clamp(threads, 1u, io::most_threads);
    p.has_limit = true;
}

void impl::offload(void (*run)(void*), void* argument) {
    if (!sched::this_parkable().is_fiber) return run(argument);
    io::offload_pool::call(io::call_kind::programs, run, argument);
}

}  // namespace ums
