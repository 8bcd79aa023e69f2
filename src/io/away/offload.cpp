// SPDX-License-Identifier: MIT
#include "io/away/offload.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cxxabi.h>
#include <list>
#include <mutex>
#include <new>
#include <optional>
#include <pthread.h>
#include <thread>
#include <utility>

#include "base/assert.hpp"
#include "base/atomic.hpp"
#include "os/cpu/topology.hpp"
#include "os/thread/at_rest.hpp"
#include "os/thread/slice.hpp"
#include "sched/fiber/wait.hpp"
#include "sched/run/park.hpp"
#include "sched/run/wake.hpp"

namespace ums::io {

namespace {

// A thread that takes a call and leaves no thread idle starts the next one before it makes the
// call. So threads of the pool are started by threads of the pool, and the first one by the thread
// that starts the runtime. None inherits anything from a carrier: neither the CPU that it is pinned
// to, nor its scheduler slice, nor the detector's counting. And no fiber waits while the kernel
// makes a thread. A thread that ends joins the one that ended before it.
//
// Fibers hold the mutex for a few instructions only, never across a switch.
struct pool {
    std::mutex mutex;
    std::condition_variable work;
    offload_task* first = nullptr;
    offload_task** last = &first;
    std::list<std::thread> threads;
    std::thread ended;  // The last thread that ended, to be joined.
    unsigned idle = 0;  // Includes threads that were started but have not run yet.
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

offload_task& take(pool& p) noexcept {
    UMS_ASSERT(p.first != nullptr && p.stats.queued != 0, "the pool's queue has lost a call");
    offload_task* const task = p.first;
    p.first = task->next;
    if (p.first == nullptr) p.last = &p.first;
    --p.stats.queued;
    return *task;
}

// Keeps one thread idle, so that the next call finds one. While the kernel refuses a new one, calls
// wait for the threads there are.
void replace_idle_thread(pool& p) noexcept {
    if (p.idle > p.stats.queued || p.stats.threads >= p.stats.most || p.is_stopping) return;
    try {
        start_thread(p, starter::clean_thread);
    } catch (const std::exception&) {
    }
}

// A fiber calls this while all threads are busy: the kernel refused the one that should be idle
// now, or the limit has grown.
void start_what_was_refused(pool& p) {
    try {
        start_thread(p, starter::fiber);
    } catch (const std::exception&) {
        if (p.stats.threads == 0) throw;
    }
}

// Returns false if the calling thread is to end.
bool wait_for_work(pool& p, std::unique_lock<std::mutex>& lock) {
    const auto is_over = [&p] { return p.first != nullptr || p.is_stopping; };
    // relaxed: only tests change the limit.
    const std::chrono::nanoseconds limit{offload_pool::idle_ns.load(base::relaxed)};
    while (!is_over()) {
        if (p.idle == 1)
            p.work.wait(lock);  // The last one stays.
        else if (!p.work.wait_for(lock, limit, is_over) && p.idle > 1)
            return false;
    }
    return p.first != nullptr;
}

void work(std::list<std::thread>::iterator self) noexcept {
    pool& p = the_pool();
    std::optional<os::at_rest> rests{std::in_place};
    std::unique_lock lock{p.mutex};
    while (wait_for_work(p, lock)) {
        rests.reset();
        offload_task& task = take(p);
        UMS_DEBUG_ASSERT(p.idle != 0, "a thread took a call without having been idle");
        --p.idle;
        ++p.stats.busy;
        replace_idle_thread(p);
        lock.unlock();
        task.run(task);
        lock.lock();
        rests.emplace();
        UMS_DEBUG_ASSERT(p.idle + p.stats.busy == p.stats.threads,
                         "a thread of the pool is neither idle nor busy");
        --p.stats.busy;
        ++p.idle;
    }
    UMS_ASSERT(p.idle != 0 && p.stats.threads != 0, "the pool has miscounted its threads");
    --p.idle;
    --p.stats.threads;
    if (p.is_stopping) return;
    std::thread before = std::exchange(p.ended, std::move(*self));
    p.threads.erase(self);
    lock.unlock();
    if (before.joinable()) before.join();  // It has finished its work.
}

void start_thread(pool& p, starter by) {
    const auto at = p.threads.emplace(p.threads.end());
    // A signal sent to the process then goes to the program's own threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        *at = std::thread{[at, by] {
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
        UMS_DEBUG_ASSERT(*p.last == nullptr && (p.first == nullptr) == (p.stats.queued == 0),
                         "the pool's queue does not end where its last call is");
        if (p.idle == 0 && p.stats.threads < p.stats.most) start_what_was_refused(p);
        if (p.stats.queued >= p.idle && p.stats.threads >= p.stats.most) ++p.stats.waited;
        task.next = nullptr;
        *p.last = &task;
        p.last = &task.next;
        ++p.stats.queued;
        ++p.stats.calls;
    }
    p.work.notify_one();
}

void offload_pool::stop() noexcept {
    pool& p = the_pool();
    std::list<std::thread> all;
    std::thread ended;
    {
        const std::lock_guard lock{p.mutex};
        p.is_stopping = true;
        all.swap(p.threads);
        ended.swap(p.ended);
    }
    p.work.notify_all();
    if (ended.joinable()) ended.join();
    for (std::thread& t : all) t.join();
    const std::lock_guard lock{p.mutex};
    UMS_ASSERT(p.first == nullptr && p.idle == 0 && p.stats.threads == 0 && p.stats.busy == 0,
               "the pool has stopped with calls or threads left");
    p.is_stopping = false;
    p.stats.calls = p.stats.waited = 0;
}

// The old one stays as it is: its mutex may be held by a thread that is not there.
void offload_pool::leave_behind() {
    auto* const made = new pool;
    made->parents = place_of_pool();
    made->stats.most = made->parents->stats.most;
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
    p.stats.most = std::clamp(threads, 1u, 4096u);
}

void impl::offload(void (*run)(void*), void* argument) {
    sched::parkable& self = sched::this_parkable();
    if (!self.is_fiber) return run(argument);
    io::waiting_call call;
    call.run = [](io::offload_task& task) noexcept {
        auto& c = static_cast<io::waiting_call&>(task);
        sched::parkable* who = c.who;
        try {
            c.function(c.argument);
        } catch (const abi::__forced_unwind&) {
            std::fputs(
                "ums: pthread_exit(), or a cancellation of the kernel thread, in a function "
                "of ums::offload(): that thread is the pool's. Return from the function\n",
                stderr);
            std::abort();
        }
        sched::wake(*who);
    };
    call.function = run;
    call.argument = argument;
    call.who = &self;
    io::offload_pool::submit(call);
    const sched::wait now{self, sched::wait_kind::offload, nullptr};
    sched::park(sched::park_kind::internal);
}

}  // namespace ums
