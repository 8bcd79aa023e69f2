// SPDX-License-Identifier: MIT
#pragma once

// ums/mutex.hpp: mutual exclusion among fibers and kernel threads. Same API as std's.
//
// mutex, timed_mutex, recursive_mutex and recursive_timed_mutex let a running caller barge past those that
// wait: the fastest way when a critical section is short, because the lock does not stand still until
// a woken fiber has got a processor. A waiter that was overtaken overtakes_most times is handed the lock.
// fair_mutex hands the lock to whoever waits longest, always: each unlock with waiters costs a
// switch, and the lock goes round in the order of arrival.
//
// Blocking:  lock() parks the fiber, never its processor; a plain kernel thread waits on a futex.
//            unlock() and try_lock() never block. Not from a signal handler.
// Fairness:  mutex: a waiter is overtaken at most overtakes_most times after it has been first in
//            the queue. fair_mutex: first come, first served; nobody overtakes.
// Ordering:  what happens before an unlock() is visible after the lock() that follows it.
// Lifetime:  may be destroyed by whoever holds it last, as soon as its unlock() has returned, and
//            by a fiber that has just locked and unlocked it, even while the unlock() that let it
//            in is still returning.
// Errors:    lock() by the owner (not of a recursive one): std::system_error,
//            resource_deadlock_would_occur. unlock() by anyone but the owner ends the program with
//            a message that names the caller. A recursive lock more than 2^32 - 1 deep:
//            resource_unavailable_try_again.
// Cost:      lock and unlock one compare-and-swap each when nobody waits.

#include <chrono>
#include <cstdint>
#include <mutex>
#include <stop_token>

#include "ums/deadline.hpp"
#include "ums/export.hpp"
#include "ums/impl/wait_list.hpp"

namespace ums {

namespace impl {

// Who holds it, with two flags in the low bits; see src/sync/mutex.cpp.
struct mutex_state {
    std::uintptr_t owner = 0;
    wait_list waiters;
};

enum class handover : bool { barging, fair };

template <handover>
struct mutex_calls {
    UMS_EXPORT static void lock(mutex_state& m);
    UMS_EXPORT static bool try_lock(mutex_state& m) noexcept;
    UMS_EXPORT static bool lock_until(mutex_state& m, deadline limit);
    UMS_EXPORT static bool lock_or_stop(mutex_state& m, deadline limit, const std::stop_token& stop);
    UMS_EXPORT static void unlock(mutex_state& m) noexcept;
};

UMS_EXPORT bool is_held_by_caller(const mutex_state& m) noexcept;
[[noreturn]] UMS_EXPORT void throw_too_deep();

}  // namespace impl

// How often a barging mutex lets a waiter be overtaken.
inline constexpr unsigned overtakes_most = 16;

class mutex {
public:
    constexpr mutex() noexcept = default;
    mutex(const mutex&) = delete;
    mutex& operator=(const mutex&) = delete;

    void lock() { calls::lock(state_); }
    [[nodiscard]] bool try_lock() noexcept { return calls::try_lock(state_); }
    void unlock() noexcept { calls::unlock(state_); }

    // Locks it, or returns false once a stop is requested. Prefers the lock if both happen.
    [[nodiscard]] bool lock(const std::stop_token& stop) {
        return calls::lock_or_stop(state_, deadline::max(), stop);
    }

private:
    using calls = impl::mutex_calls<impl::handover::barging>;
    friend struct mutex_access;
    impl::mutex_state state_;
};

class timed_mutex {
public:
    constexpr timed_mutex() noexcept = default;
    timed_mutex(const timed_mutex&) = delete;
    timed_mutex& operator=(const timed_mutex&) = delete;

    void lock() { calls::lock(state_); }
    [[nodiscard]] bool try_lock() noexcept { return calls::try_lock(state_); }
    void unlock() noexcept { calls::unlock(state_); }
    [[nodiscard]] bool lock(const std::stop_token& stop) {
        return calls::lock_or_stop(state_, deadline::max(), stop);
    }

    // False once the time has passed. Tries at least once.
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period>& d) {
        return calls::lock_until(state_, deadline_after(d));
    }
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration>& t) {
        return impl::until(t, [this](deadline limit) { return calls::lock_until(state_, limit); });
    }

private:
    using calls = impl::mutex_calls<impl::handover::barging>;
    friend struct mutex_access;
    impl::mutex_state state_;
};

// First come, first served. Has the timed forms too.
class fair_mutex {
public:
    constexpr fair_mutex() noexcept = default;
    fair_mutex(const fair_mutex&) = delete;
    fair_mutex& operator=(const fair_mutex&) = delete;

    void lock() { calls::lock(state_); }
    [[nodiscard]] bool try_lock() noexcept { return calls::try_lock(state_); }
    void unlock() noexcept { calls::unlock(state_); }
    [[nodiscard]] bool lock(const std::stop_token& stop) {
        return calls::lock_or_stop(state_, deadline::max(), stop);
    }
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period>& d) {
        return calls::lock_until(state_, deadline_after(d));
    }
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration>& t) {
        return impl::until(t, [this](deadline limit) { return calls::lock_until(state_, limit); });
    }

private:
    using calls = impl::mutex_calls<impl::handover::fair>;
    friend struct mutex_access;
    impl::mutex_state state_;
};

namespace impl {

// The owner may lock it again, and unlocks it as often.
class recursive_lock {
public:
    void lock() {
        if (again()) return;
        calls::lock(state_);
        depth_ = 1;
    }
    [[nodiscard]] bool try_lock() noexcept {
        if (is_held_by_caller(state_)) return depth_ != most && ++depth_ != 0;
        return first(calls::try_lock(state_));
    }
    void unlock() noexcept {
        // A caller that does not own it may not touch the depth; unlock() tells it so.
        if (is_held_by_caller(state_) && --depth_ != 0) return;
        calls::unlock(state_);
    }
    [[nodiscard]] bool lock_until(deadline limit) {
        return again() || first(calls::lock_until(state_, limit));
    }
    [[nodiscard]] bool lock_or_stop(deadline limit, const std::stop_token& stop) {
        return again() || first(calls::lock_or_stop(state_, limit, stop));
    }

private:
    using calls = mutex_calls<handover::barging>;
    static constexpr std::uint32_t most = ~std::uint32_t{0};

    bool again() {
        if (!is_held_by_caller(state_)) return false;
        if (depth_ == most) throw_too_deep();
        ++depth_;
        return true;
    }
    bool first(bool locked) noexcept {
        if (locked) depth_ = 1;
        return locked;
    }

    mutex_state state_;
    std::uint32_t depth_ = 0;  // The owner's.
};

}  // namespace impl

class recursive_mutex {
public:
    constexpr recursive_mutex() noexcept = default;
    recursive_mutex(const recursive_mutex&) = delete;
    recursive_mutex& operator=(const recursive_mutex&) = delete;

    void lock() { lock_.lock(); }
    [[nodiscard]] bool try_lock() noexcept { return lock_.try_lock(); }
    void unlock() noexcept { lock_.unlock(); }
    [[nodiscard]] bool lock(const std::stop_token& stop) {
        return lock_.lock_or_stop(deadline::max(), stop);
    }

private:
    impl::recursive_lock lock_;
};

class recursive_timed_mutex {
public:
    constexpr recursive_timed_mutex() noexcept = default;
    recursive_timed_mutex(const recursive_timed_mutex&) = delete;
    recursive_timed_mutex& operator=(const recursive_timed_mutex&) = delete;

    void lock() { lock_.lock(); }
    [[nodiscard]] bool try_lock() noexcept { return lock_.try_lock(); }
    void unlock() noexcept { lock_.unlock(); }
    [[nodiscard]] bool lock(const std::stop_token& stop) {
        return lock_.lock_or_stop(deadline::max(), stop);
    }
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period>& d) {
        return lock_.lock_until(deadline_after(d));
    }
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration>& t) {
        return impl::until(t, [this](deadline limit) { return lock_.lock_until(limit); });
    }

private:
    impl::recursive_lock lock_;
};

// As in std, which they are: they work with any of the types above.
using std::adopt_lock;
using std::adopt_lock_t;
using std::defer_lock;
using std::defer_lock_t;
using std::lock_guard;
using std::scoped_lock;
using std::try_to_lock;
using std::try_to_lock_t;
using std::unique_lock;
using std::lock;
using std::try_lock;

}  // namespace ums
