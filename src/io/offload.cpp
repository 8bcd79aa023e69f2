// SPDX-License-Identifier: MIT
#include "io/offload.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <list>
#include <mutex>
#include <pthread.h>
#include <system_error>
#include <thread>

#include "sched/park.hpp"
#include "sched/wake.hpp"

namespace ums::io {

namespace {

using namespace std::chrono_literals;

constexpr auto idle_time = 10s;

// Fibers hold the mutex for a few instructions only, never across a switch.
struct pool {
    std::mutex mutex;
    std::condition_variable work;
    offload_task* first = nullptr;
    offload_task** last = &first;
    std::list<std::thread> threads;
    std::list<std::thread> ended;  // To be joined.
    unsigned idle = 0;
    bool is_stopping = false;
    offload_statistics stats{
        .calls = 0, .waited = 0, .threads = 0, .busy = 0, .queued = 0, .most = 64};
};

pool& the_pool() noexcept {
    static pool* const p = new pool;  // Never destroyed: threads may outlive main().
    return *p;
}

void work(std::list<std::thread>::iterator self) noexcept {
    pool& p = the_pool();
    std::unique_lock lock{p.mutex};
    for (;;) {
        if (p.first == nullptr) {
            if (p.is_stopping) break;
            ++p.idle;
            const bool in_time = p.work.wait_for(
                lock, idle_time, [&] { return p.first != nullptr || p.is_stopping; });
            --p.idle;
            if (!in_time) break;
            continue;
        }
        offload_task* task = p.first;
        p.first = task->next;
        if (p.first == nullptr) p.last = &p.first;
        --p.stats.queued;
        ++p.stats.busy;
        lock.unlock();
        task->run(*task);
        lock.lock();
        --p.stats.busy;
    }
    --p.stats.threads;
    if (!p.is_stopping) p.ended.splice(p.ended.end(), p.threads, self);
}

void start_thread(pool& p) {
    const auto at = p.threads.emplace(p.threads.end());
    // A signal of the process goes to threads of the program's own.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        *at = std::thread{[at] {
            pthread_setname_np(pthread_self(), "ums offload");
            { const std::lock_guard started{the_pool().mutex}; }
            work(at);
        }};
    } catch (...) {
        p.threads.erase(at);
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    ++p.stats.threads;
}

struct waiting_call : offload_task {
    void (*function)(void*);
    void* argument;
    sched::parkable* who;
};

}  // namespace

void offload_pool::submit(offload_task& task) {
    pool& p = the_pool();
    std::list<std::thread> gone;
    {
        const std::lock_guard lock{p.mutex};
        gone.swap(p.ended);
        if (p.stats.queued >= p.idle) {
            if (p.stats.threads < p.stats.most) {
                try {
                    start_thread(p);
                } catch (const std::system_error&) {
                    if (p.stats.threads == 0) throw;
                    ++p.stats.waited;
                }
            } else {
                ++p.stats.waited;
            }
        }
        task.next = nullptr;
        *p.last = &task;
        p.last = &task.next;
        ++p.stats.queued;
        ++p.stats.calls;
    }
    p.work.notify_one();
    for (std::thread& t : gone) t.join();  // They are past their work: short.
}

void offload_pool::stop() noexcept {
    pool& p = the_pool();
    std::list<std::thread> all;
    {
        const std::lock_guard lock{p.mutex};
        p.is_stopping = true;
        all.swap(p.threads);
        all.splice(all.end(), p.ended);
    }
    p.work.notify_all();
    for (std::thread& t : all) t.join();
    const std::lock_guard lock{p.mutex};
    p.is_stopping = false;
    p.stats.calls = p.stats.waited = 0;
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
        c.function(c.argument);
        sched::wake(*who);
    };
    call.function = run;
    call.argument = argument;
    call.who = &self;
    io::offload_pool::submit(call);
    sched::park(sched::park_kind::internal);
}

}  // namespace ums
