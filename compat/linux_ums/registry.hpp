// SPDX-License-Identifier: MIT
#pragma once

// linux_ums/registry.hpp: handles, lists and workers by their numbers, under one lock.
//
// A thread holds the lock for a few map operations at a time, never while a worker runs or a thread
// is made. A worker takes it in critical regions only, so its holder is never stopped.

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <new>
#include <unordered_map>
#include <vector>

#include "base/atomic.hpp"
#include "base/futex.hpp"
#include "base/lock.hpp"
#include "ums/compat/linux_ums.h"
#include "ums/ums_scheduling.h"

namespace ums::linux_names {

struct body;
struct handle;
struct list;
struct scheduler;

// A word that changes when something happens that a thread may be waiting for.
//
// Why no wake-up is lost: a waiter counts itself, reads the word, looks for the deed, and sleeps
// only while the word is what it read. A notifier does its deed first, then looks at the count.
// sync(linux-ums): both sides are sequentially consistent, so either the waiter's look finds the
// deed or the notifier's look finds the waiter.
class event {
public:
    class waiter {
    public:
        explicit waiter(event& of) noexcept : of_{of} { of_.waiters_.fetch_add(1); }
        ~waiter() { of_.waiters_.fetch_sub(1); }
        waiter(const waiter&) = delete;
        waiter& operator=(const waiter&) = delete;
        // Call before the look.
        void arm() noexcept { seen_ = of_.word_.load(); }
        // Call after a look that found nothing.
        void wait() noexcept { compat::futex_wait(&of_.word_, seen_); }

    private:
        event& of_;
        std::uint32_t seen_ = 0;
    };

    void notify(int how_many) noexcept {
        if (waiters_.load() == 0) return;
        word_.fetch_add(1);
        compat::futex_wake(&word_, how_many);
    }
    void notify_all() noexcept { notify(0x7FFFFFFF); }

private:
    std::atomic<std::uint32_t> word_{0}, waiters_{0};
};

struct worker {
    enum class state : unsigned char { ready, running, blocked };
    ums_worker_thread_data shown{};
    state is = state::ready;
    body* in = nullptr;  // The thread that runs it; null: it has not begun.
    list* from = nullptr;
    handle* adder = nullptr;
    // Valid while the worker is ready: its place in the list's order, and the number of this
    // readiness.
    worker *before = nullptr, *after = nullptr;
    std::uint64_t ticket = 0;  // 0: not ready.
    // Figures:
    std::uint64_t switches = 0, running_ns = 0;
    int executed_by = 0;  // The id of the thread that executed it last; 0: it has not begun.
};

struct list {
    completion_list_data shown{};
    ums_completion_list_t items = 0;
    event became_ready;
    bool is_marked = false;
    handle* owner = nullptr;
    std::size_t left = 0;        // How many workers have this list.
    std::size_t schedulers = 0;  // How many threads serve it.
    // The ready workers, in the order of their tickets.
    worker *first = nullptr, *last = nullptr;
    std::size_t ready = 0;
};

struct handle {
    int number = 0;
    std::size_t left = 0;  // How many of the workers it added are left.
    bool is_released = false;
    bool is_closing = false;  // Neither it nor its lists can be found any more.
    std::vector<scheduler*> schedulers;
};

struct registry {
    std::unordered_map<int, std::unique_ptr<handle>> handles;
    std::unordered_map<ums_pid_t, std::unique_ptr<list>> lists;
    std::unordered_map<ums_pid_t, worker> workers;  // Those that have not ended.
    int next_handle = 1;
    ums_pid_t next_list = 1, next_worker = 1;
    std::uint64_t next_ticket = 1;
    event ended;  // The last worker of a handle or of a list has ended, or a thread has.
    std::atomic<int> ending{0};  // Threads that have ended but were not collected yet.

    handle* find_handle(int number);
    list* find_list(ums_pid_t number);
    worker* find_worker(ums_pid_t number);
};

registry& all();

// Holds the lock; may release it in between.
class locked {
public:
    locked() noexcept { lock(); }
    ~locked() {
        if (is_held_) unlock();
    }
    locked(const locked&) = delete;
    locked& operator=(const locked&) = delete;
    void lock() noexcept;
    void unlock() noexcept;

private:
    bool is_held_ = false;
};

// All of these require the lock.

// Puts the worker at the end of the list.
void make_ready(worker& w, list& in);
// Takes the worker from ready to running.
void take(worker& w);
// Forgets the worker.
void end(worker& w);
// Takes over what came to the completion list: workers that can continue, and threads that have
// ended.
void collect(list& l);

// Notifies the list's events whenever something comes to its completion list.
void watch(list& l);

// Returns what f() returns, and stores an error in errno as well.
template <class F>
int guarded(F f) noexcept {
    int got = -ENOMEM;
    try {
        got = f();
    } catch (const std::bad_alloc&) {
    }
    if (got < 0) errno = -got;
    return got;
}

}  // namespace ums::linux_names
