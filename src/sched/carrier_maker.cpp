// SPDX-License-Identifier: MIT
#include "sched/carrier_maker.hpp"

#include <algorithm>
#include <mutex>
#include <pthread.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

#include "os/futex.hpp"
#include "sched/carrier.hpp"
#include "sched/carrier_pool.hpp"

namespace ums::sched {

namespace {

constexpr os::nanoseconds shortest_pause = 1'000'000, longest_pause = 1'000'000'000;

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
    const int error = c.thread.start(
        [](void* it) -> void* {
            static_cast<carrier*>(it)->run();
            return nullptr;
        },
        &c);
    if (error != 0) return error;
    c.is_made.store(1, base::release);  // sync(carrier.made): see carrier_pool::join_thread().
    os::futex_wake(c.is_made.address());
    return 0;
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
            os::nanoseconds until = os::never;
            if (o != nullptr) {
                orders = o->next;
            } else if ((pool = first_due(until)) != nullptr) {
                remove(*pool);
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
                const bool is_refused = !pool->make_spares(&start_thread);
                const bool looks = pool->look_at_refused();
                lock.acquire();
                pool->pause_ =
                    is_refused ? std::clamp(2 * pool->pause_, shortest_pause, longest_pause) : 0;
                if (is_refused)
                    put(*pool, os::now() + pool->pause_);
                else if (looks && !pool->is_asking_)
                    put(*pool, os::now() + carrier_pool::told_after);
                working_for.store(nullptr, base::relaxed);
                works_done.fetch_add(1, base::release);  // sync(maker.work)
                lock.release();
                os::futex_wake(works_done.address(), 1 << 30);
            } else if (ends) {
                return;
            } else {
                os::futex_wait(wishes, seen, until);
            }
        }
    }

    // Under the lock, all three. A pool whose time has come; null: `until` says when there will be one.
    static carrier_pool* first_due(os::nanoseconds& until) noexcept {
        if (asking == nullptr) return nullptr;
        const os::nanoseconds now = os::now();
        for (carrier_pool* p = asking; p != nullptr; p = p->next_asking_) {
            if (p->again_at_ <= now) return p;
            until = std::min(until, p->again_at_);
        }
        return nullptr;
    }
    static void put(carrier_pool& pool, os::nanoseconds when) noexcept {
        pool.again_at_ = when;
        if (std::exchange(pool.is_asking_, true)) return;
        pool.next_asking_ = asking;
        asking = &pool;
    }
    static void remove(carrier_pool& pool) noexcept {
        if (!std::exchange(pool.is_asking_, false)) return;
        carrier_pool** at = &asking;
        while (*at != &pool) at = &(*at)->next_asking_;
        *at = pool.next_asking_;
    }

    // One that was refused a thread is not worked for before its pause is over.
    static void ask(carrier_pool& pool) noexcept {
        lock.acquire();
        if (!pool.is_asking_ || (pool.again_at_ != 0 && pool.pause_ == 0)) {
            put(pool, 0);
            wish();
        }
        lock.release();
        os::futex_wake(wishes.address());
    }

    static void forget(carrier_pool& pool) noexcept {
        lock.acquire();
        remove(pool);
        while (working_for.load(base::relaxed) == &pool) {
            // sync(maker.work): sees what was done.
            const std::uint32_t seen = works_done.load(base::acquire);
            lock.release();
            os::futex_wait(works_done, seen);
            lock.acquire();
        }
        remove(pool);  // The work may have put it back.
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
