// SPDX-License-Identifier: MIT
#include "connections.hpp"

#include <ctime>

#include <algorithm>
#include <mutex>
#include <utility>

using namespace std::chrono_literals;

std::int64_t connections::now() noexcept {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1'000'000;
}

connection::connection(connections& of, ums::net::stream peer) : all_(of), peer_(std::move(peer)) {
    const std::lock_guard held{all_.lock_};
    next_ = all_.first_;
    if (next_ != nullptr) next_->previous_ = this;
    all_.first_ = this;
    // relaxed, both: written under the lock, read as figures and under it.
    all_.count_.fetch_add(1, std::memory_order_relaxed);
    all_.total_.fetch_add(1, std::memory_order_relaxed);
}

connection::~connection() {
    const std::lock_guard held{all_.lock_};
    (previous_ != nullptr ? previous_->next_ : all_.first_) = next_;
    if (next_ != nullptr) next_->previous_ = previous_;
    all_.count_.fetch_sub(1, std::memory_order_relaxed);  // relaxed: see the constructor.
    if (all_.first_ == nullptr) all_.empty_.notify_all();
}

void connection::allow(std::chrono::milliseconds time, bool writes) noexcept {
    std::int64_t until = never;
    if (time > 0ms) {
        until = connections::now() + time.count();
        const std::int64_t late = std::min<std::int64_t>(time.count() / 8, 100);
        // relaxed, both: no other fiber stores them, except the watch, and then it has ended the
        // wait.
        const std::int64_t before = until_.load(std::memory_order_relaxed);
        if (before >= until && before - until <= late &&
            writes_.load(std::memory_order_relaxed) == writes)
            return;
        until += late;
    }
    // relaxed: the watch reads it after until_, and if it reads an old value the connection has
    // moved on.
    writes_.store(writes, std::memory_order_relaxed);
    until_.store(until, std::memory_order_seq_cst);  // sync(watch): see the top of the header.
    all_.wake_watch(until);
}

void connection::set_idle(bool idle) noexcept {
    if (idle_.load(std::memory_order_relaxed) == idle) return;  // relaxed: only we store it.
    // sync(stop): either stop() sees it, or we see stops_. relaxed when the idle time is over: a
    // wait that is ended for nothing still finds the bytes that came, and what a client learns
    // afterwards reaches it through the kernel, whose locks order it behind this store.
    idle_.store(idle, idle ? std::memory_order_seq_cst : std::memory_order_relaxed);
}

bool connection::has_timed_out() const noexcept {
    return timed_out_.load(std::memory_order_acquire);  // sync(watch): set before the shutdown.
}

bool connection::must_end() const noexcept {
    return all_.stops_.load(std::memory_order_seq_cst);  // sync(stop): see set_idle().
}

connections::connections() : watch_([this] { watch(); }) {}

connections::~connections() {
    ends_.store(true, std::memory_order_seq_cst);  // sync(watch): comes before the watch is woken.
    wake_.set();
    watch_.join();
}

void connections::wake_watch(std::int64_t until) noexcept {
    // sync(watch): comes after the store of until_.
    if (until < sleeps_until_.load(std::memory_order_seq_cst)) wake_.set();
}

void connections::watch() {
    // sync(watch), all of it: the watch says how long it will sleep before it looks.
    while (!ends_.load(std::memory_order_seq_cst)) {
        // It looks now, so it need not be woken.
        sleeps_until_.store(0, std::memory_order_seq_cst);
        const std::int64_t present = now();
        const std::int64_t next = look(present);
        sleeps_until_.store(next, std::memory_order_seq_cst);
        if (look(present) < next || ends_.load(std::memory_order_seq_cst)) continue;
        if (next == connection::never) {
            wake_.wait();
        } else {
            // At most ten times a second, however many times there are to wait for.
            const auto wait = std::max<std::int64_t>(next - present, 100);
            (void)wake_.wait_for(std::chrono::milliseconds{wait});
        }
    }
}

// Ends the waits whose time has passed. Returns the earliest time of the others.
std::int64_t connections::look(std::int64_t present) {
    std::int64_t next = connection::never;
    const std::lock_guard held{lock_};
    for (connection* c = first_; c != nullptr; c = c->next_) {
        const std::int64_t until = c->until_.load(std::memory_order_seq_cst);  // sync(watch)
        if (until > present) {
            next = std::min(next, until);
            continue;
        }
        // This is the second time for the same connection, so it cannot even send its answer.
        // relaxed: only we set it.
        const bool again = c->timed_out_.load(std::memory_order_relaxed);
        // relaxed: see allow().
        const bool writes = again || c->writes_.load(std::memory_order_relaxed);
        c->timed_out_.store(true, std::memory_order_release);  // sync(watch)
        std::int64_t expected = until;
        const std::int64_t later = again ? connection::never : present + 5000;
        // relaxed: if the exchange fails, the connection's newer time stands.
        if (c->until_.compare_exchange_strong(expected, later, std::memory_order_relaxed))
            next = std::min(next, later);
        (void)c->peer_.shutdown(writes ? SHUT_RDWR : SHUT_RD);
    }
    return next;
}

void connections::stop() {
    stops_.store(true,
                 // sync(stop): comes before the search for idle connections.
                 std::memory_order_seq_cst);
    const std::lock_guard held{lock_};
    for (connection* c = first_; c != nullptr; c = c->next_)
        if (c->idle_.load(std::memory_order_seq_cst))
            (void)c->peer_.shutdown(SHUT_RD);  // sync(stop)
}

bool connections::wait_until_empty(std::chrono::milliseconds time) {
    std::unique_lock held{lock_};
    return empty_.wait_for(held, time, [this] { return first_ == nullptr; });
}

void connections::end_all() {
    const std::lock_guard held{lock_};
    for (connection* c = first_; c != nullptr; c = c->next_) (void)c->peer_.shutdown(SHUT_RDWR);
}
