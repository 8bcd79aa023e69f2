// SPDX-License-Identifier: MIT
#include "carry/maker.hpp"

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <new>
#include <pthread.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

#include "base/assert.hpp"
#include "base/chain.hpp"
#include "os/futex.hpp"
#include "os/say.hpp"
#include "os/thread/at_rest.hpp"

namespace ums::carry {

namespace {

constexpr os::nanoseconds shortest_pause = 1'000'000, longest_pause = 1'000'000'000;

// A thread whose start another thread waits for.
struct order {
    os::kernel_thread& thread;
    void* (*body)(void*);
    void* argument;
    int error = 0;
    base::atomic<std::uint32_t> done;
    order* next = nullptr;
};

std::mutex uses_lock;  // Held while the thread is started or joined.
unsigned uses = 0;
std::thread* thread;  // A pointer: the program may end while it runs.

// Changed under `lock`, and waited on.
base::atomic<std::uint32_t> wishes;
os::lock lock{os::lock_rank::leaf};
// Guarded by it:
order* orders = nullptr;
crew* asking = nullptr;
bool stopping = false;

// After a fork(): the thread is to be started when it is needed.
base::atomic<bool> is_missing;

base::atomic<crew*> working_for;  // Set under `lock`; changes to null are waited for.
base::atomic<std::uint32_t> works_done;

void wish() noexcept {
    // Requires: the lock. relaxed: the thread takes the lock before it looks.
    wishes.store(wishes.load(base::relaxed) + 1, base::relaxed);
}

std::thread* start_thread(void (*body)() noexcept) {
    try {
        return new std::thread{body};
    } catch (const std::system_error& e) {
        throw std::system_error{e.code(), "ums: no kernel thread for another processor"};
    }
}

}  // namespace

void maker::run() noexcept {
    pthread_setname_np(pthread_self(), "ums maker");
    const os::at_rest counted;
    for (;;) {
        lock.acquire();
        const std::uint32_t seen = wishes.load(base::relaxed);
        order* const o = base::chain::pop_front(orders, &order::next);
        os::nanoseconds until = os::never;
        crew* const c = o == nullptr ? first_due(until) : nullptr;
        if (c != nullptr) {
            remove(*c);
            working_for.store(c, base::relaxed);
        }
        const bool ends = stopping;
        lock.release();
        if (o != nullptr) {
            UMS_ASSERT(!o->thread.is_started(), "a kernel thread is ordered that is there");
            o->error = o->thread.start(o->body, o->argument);
            // sync(maker.order): publishes what was made. `o` may be gone after this.
            o->done.store(1, base::release);
            os::futex_wake(o->done.address());
        } else if (c != nullptr) {
            work_for(*c);
        } else if (ends) {
            return;
        } else {
            os::futex_wait(wishes, seen, until);
        }
    }
}

void maker::work_for(crew& c) noexcept {
    const crew::outcome got = c.work();
    lock.acquire();
    UMS_ASSERT(working_for.load(base::relaxed) == &c, "the maker works for another crew");
    c.pause_ = got.was_refused ? std::clamp(2 * c.pause_, shortest_pause, longest_pause) : 0;
    if (got.was_refused)
        put(c, os::now() + c.pause_);
    else if (got.look_again != 0 && !c.is_asking_)
        put(c, os::now() + got.look_again);
    working_for.store(nullptr, base::relaxed);
    works_done.fetch_add(1, base::release);  // sync(maker.work)
    lock.release();
    os::futex_wake(works_done.address(), 1 << 30);
}

// All three require the lock. Returns a crew whose time has come; null: `until` says when one will
// be due.
crew* maker::first_due(os::nanoseconds& until) noexcept {
    if (asking == nullptr) return nullptr;
    const os::nanoseconds now = os::now();
    for (crew* c = asking; c != nullptr; c = c->next_asking_) {
        if (c->again_at_ <= now) return c;
        until = std::min(until, c->again_at_);
    }
    return nullptr;
}
void maker::put(crew& c, os::nanoseconds when) noexcept {
    c.again_at_ = when;
    if (!std::exchange(c.is_asking_, true)) base::chain::push_front(asking, c, &crew::next_asking_);
}
void maker::remove(crew& c) noexcept {
    if (std::exchange(c.is_asking_, false)) base::chain::remove(asking, c, &crew::next_asking_);
}

void maker::leave_behind() noexcept {
    new (&uses_lock) std::mutex;
    uses = 1;  // So nobody starts the thread, or ends it.
    lock.leave_behind();
    orders = nullptr;
    asking = nullptr;
    stopping = false;
    working_for.store(nullptr, base::relaxed);  // relaxed, both: there is one thread.
    is_missing.store(true, base::relaxed);
}

// 0, or the error number: it is tried again when the maker is next asked.
int maker::make_up() noexcept {
    // sync(maker.late): sees the thread.
    if (!is_missing.load(base::acquire)) [[likely]]
        return 0;
    const std::lock_guard only{uses_lock};
    if (!is_missing.load(base::relaxed)) return 0;
    try {
        thread = start_thread(&maker::run);
    } catch (const std::exception&) {  // No thread, or no memory.
        static constinit bool has_complained = false;
        if (!std::exchange(has_complained, true))
            os::say(
                "after fork(): no kernel thread could be made: a fiber that blocks stops its "
                "processor");
        return EAGAIN;
    }
    is_missing.store(false, base::release);  // sync(maker.late)
    return 0;
}

// One that was refused a thread is not worked for before its pause is over.
void maker::ask(crew& c) noexcept {
    static_cast<void>(make_up());  // Without it the wish is kept.
    lock.acquire();
    if (!c.is_asking_ || (c.again_at_ != 0 && c.pause_ == 0)) {
        put(c, 0);
        wish();
    }
    lock.release();
    os::futex_wake(wishes.address());
}

void maker::forget(crew& c) noexcept {
    lock.acquire();
    remove(c);
    while (working_for.load(base::relaxed) == &c) {
        // sync(maker.work): sees what the work did.
        const std::uint32_t seen = works_done.load(base::acquire);
        lock.release();
        os::futex_wait(works_done, seen);
        lock.acquire();
    }
    remove(c);  // The work may have put it back.
    lock.release();
}

maker::use::use() {
    const std::lock_guard only{uses_lock};
    if (uses == 0) {
        stopping = false;
        thread = start_thread(&maker::run);
    }
    ++uses;
}

maker::use::~use() {
    const std::lock_guard only{uses_lock};
    UMS_ASSERT(uses != 0, "the maker is given up more often than taken");
    if (--uses != 0) return;
    lock.acquire();
    stopping = true;
    wish();
    lock.release();
    os::futex_wake(wishes.address());
    thread->join();
    delete thread;
    UMS_ASSERT(asking == nullptr && orders == nullptr,
               "the maker has ended, and a crew waits for it");
}

int maker::start(os::kernel_thread& made, void* (*body)(void*), void* argument) noexcept {
    if (const int error = make_up(); error != 0) return error;
    order mine{.thread = made, .body = body, .argument = argument, .done = {}};
    lock.acquire();
    base::chain::push_front(orders, mine, &order::next);
    wish();
    lock.release();
    os::futex_wake(wishes.address());
    // sync(maker.order): sees what was made.
    while (mine.done.load(base::acquire) == 0) os::futex_wait(mine.done, 0);
    return mine.error;
}

}  // namespace ums::carry
