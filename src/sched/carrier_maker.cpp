// SPDX-License-Identifier: MIT
#include "sched/carrier_maker.hpp"

#include <cerrno>
#include <mutex>
#include <new>
#include <pthread.h>
#include <system_error>
#include <thread>
#include <unistd.h>

#include "os/futex.hpp"
#include "sched/carrier.hpp"
#include "sched/carrier_pool.hpp"

namespace ums::sched {

namespace {

struct order {
    carrier* made = nullptr;
    int error = 0;
    base::atomic<std::uint32_t> done;
    order* next = nullptr;
};

std::mutex uses_lock;  // Held while the thread is started or joined.
unsigned uses = 0;
std::thread* thread;  // A pointer: the program may end while it runs.
base::atomic<int> thread_id;

// Changed under `lock`, and waited on.
base::atomic<std::uint32_t> wishes;
os::lock lock{os::lock_rank::leaf};
// Guarded by it:
order* orders = nullptr;
carrier_pool* asking = nullptr;
bool stopping = false;

base::atomic<carrier_pool*> working_for;  // Set under `lock`; changes to null are waited for.
base::atomic<std::uint32_t> works_done;

void wish() noexcept {
    // Under the lock. relaxed: the thread takes the lock before it looks.
    wishes.store(wishes.load(base::relaxed) + 1, base::relaxed);
}

int start_thread(carrier& c) noexcept {
    try {
        c.thread = std::thread{[&c] { c.run(); }};
        c.is_made.store(1, base::release);  // sync(carrier.made): see carrier_pool::join_thread().
        os::futex_wake(c.is_made.address());
        return 0;
    } catch (const std::system_error& e) {
        return e.code().value();
    } catch (const std::bad_alloc&) {
        return ENOMEM;
    }
}

}  // namespace

// What the thread does, as a friend of the pools.
struct carrier_maker_loop {
    static void run() noexcept {
        pthread_setname_np(pthread_self(), "ums maker");
        thread_id.store(gettid(), base::release);  // sync(maker.tid)
        os::futex_wake(thread_id.address(), 1 << 30);
        for (;;) {
            lock.acquire();
            const std::uint32_t seen = wishes.load(base::relaxed);
            order* o = orders;
            carrier_pool* pool = nullptr;
            if (o != nullptr) {
                orders = o->next;
            } else if ((pool = asking) != nullptr) {
                asking = pool->next_asking_;
                pool->is_asking_ = false;
                working_for.store(pool, base::relaxed);
            }
            const bool ends = stopping;
            lock.release();
            if (o != nullptr) {
                o->error = start_thread(*o->made);
                // sync(maker.order): what was made. `o` may be gone after it.
                o->done.store(1, base::release);
                os::futex_wake(o->done.address());
            } else if (pool != nullptr) {
                pool->reap();
                pool->make_spares(&start_thread);
                lock.acquire();
                working_for.store(nullptr, base::relaxed);
                works_done.fetch_add(1, base::release);  // sync(maker.work)
                lock.release();
                os::futex_wake(works_done.address(), 1 << 30);
            } else if (ends) {
                return;
            } else {
                os::futex_wait(wishes, seen);
            }
        }
    }

    static void ask(carrier_pool& pool) noexcept {
        lock.acquire();
        if (!pool.is_asking_) {
            pool.is_asking_ = true;
            pool.next_asking_ = asking;
            asking = &pool;
            wish();
        }
        lock.release();
        os::futex_wake(wishes.address());
    }

    static void forget(carrier_pool& pool) noexcept {
        lock.acquire();
        if (pool.is_asking_) {
            carrier_pool** at = &asking;
            while (*at != &pool) at = &(*at)->next_asking_;
            *at = pool.next_asking_;
            pool.is_asking_ = false;
        }
        while (working_for.load(base::relaxed) == &pool) {
            // sync(maker.work): sees what was done.
            const std::uint32_t seen = works_done.load(base::acquire);
            lock.release();
            os::futex_wait(works_done, seen);
            lock.acquire();
        }
        lock.release();
    }
};

carrier_maker::use::use() {
    const std::lock_guard only{uses_lock};
    if (uses == 0) {
        stopping = false;
        try {
            thread = new std::thread{&carrier_maker_loop::run};
        } catch (const std::system_error& e) {
            throw std::system_error{e.code(), "ums: no kernel thread for another processor"};
        }
    }
    ++uses;
}

carrier_maker::use::~use() {
    const std::lock_guard only{uses_lock};
    if (--uses != 0) return;
    lock.acquire();
    stopping = true;
    wish();
    lock.release();
    os::futex_wake(wishes.address());
    thread->join();
    delete thread;
    thread_id.store(0, base::relaxed);
}

int carrier_maker::tid() noexcept {
    for (;;) {
        const int id = thread_id.load(base::acquire);  // sync(maker.tid)
        if (id != 0) return id;
        os::futex_wait(thread_id.address(), 0);
    }
}

int carrier_maker::start(carrier& c) noexcept {
    order mine;
    mine.made = &c;
    lock.acquire();
    mine.next = orders;
    orders = &mine;
    wish();
    lock.release();
    os::futex_wake(wishes.address());
    // sync(maker.order): sees what was made.
    while (mine.done.load(base::acquire) == 0) os::futex_wait(mine.done, 0);
    return mine.error;
}

void carrier_maker::ask(carrier_pool& pool) noexcept { carrier_maker_loop::ask(pool); }
void carrier_maker::forget(carrier_pool& pool) noexcept { carrier_maker_loop::forget(pool); }

}  // namespace ums::sched
