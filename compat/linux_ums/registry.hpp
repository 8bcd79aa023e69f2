// SPDX-License-Identifier: MIT
#pragma once

// linux_ums/registry.hpp: handles, lists and workers by their numbers, under one lock.
//
// The lock is held for a few map operations at a time, never while a worker runs or a thread is made.
// A worker takes it in critical regions only, so its holder is never stopped.

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

// A word that changes when something happened that somebody may wait for.
//
// Why no wake-up is lost. A waiter counts itself, reads the word, looks, and sleeps only while the word
// is what it read. A notifier does its deed first, then looks at the count. sync(linux-ums): both sides
// are sequentially consistent, so either the waiter's look finds the deed or the notifier the waiter.
class event {
public:
    class waiter {
    public:
        explicit waiter(event& of) noexcept : of_{of} { of_.waiters_.fetch_add(1); }
        ~waiter() { of_.waiters_.fetch_sub(1); }
        waiter(const waiter&) = delete;
        waiter& operator=(const waiter&) = delete;
        // Before the look.
        void arm() noexcept { seen_ = of_.word_.load(); }
        // After a look in vain.
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
    // While it is ready: its place in the list's order, and the number of this readiness.
    worker *before = nullptr, *after = nullptr;
    std::uint64_t ticket = 0;  // 0: not ready.
    // Figures:
    std::uint64_t switches = 0, running_ns = 0;
    int executed_by = 0;  // Last, the thread's id; 0: it has not begun.
};

struct list {
    completion_list_data shown{};
    ums_completion_list_t items = 0;
    event became_ready;
    bool is_marked = false;
    handle* owner = nullptr;
    std::size_t left = 0;        // Workers whose list it is.
    std::size_t schedulers = 0;  // Threads that serve it.
    // The ready workers, in the order of their tickets.
    worker *first = nullptr, *last = nullptr;
    std::size_t ready = 0;
};

struct handle {
    int number = 0;
    std::size_t left = 0;  // Workers that it added.
    bool is_released = false;
    bool is_closing = false;  // Nobody finds it any more, nor its lists.
    std::vector<scheduler*> schedulers;
};

struct registry {
    std::unordered_map<int, std::unique_ptr<handle>> handles;
    std::unordered_map<ums_pid_t, std::unique_ptr<list>> lists;
    std::unordered_map<ums_pid_t, worker> workers;  // Those that have not ended.
    int next_handle = 1;
    ums_pid_t next_list = 1, next_worker = 1;
    std::uint64_t next_ticket = 1;
    event ended;                 // The last worker of a handle or a list has, or a thread.
    std::atomic<int> ending{0};  // Threads that have ended and were not collected yet.

    handle* find_handle(int number);
    list* find_list(ums_pid_t number);
    worker* find_worker(ums_pid_t number);
};

registry& all();

// Holds the lock; may let go of it in between.
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

// Requires, all: the lock.

// Puts it at the end of the list.
void make_ready(worker& w, list& in);
// From ready to running.
void take(worker& w);
// It is forgotten.
void end(worker& w);
// Takes over what came to the completion list: workers that can go on, and threads that have ended.
void collect(list& l);

// Has the list's events told when something comes to its completion list.
void watch(list& l);

// What f() returns, and in errno too if it is an error.
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
