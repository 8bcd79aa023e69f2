// SPDX-License-Identifier: MIT
#pragma once

// ums/condition_variable.hpp: waits until another fiber or thread has changed something. Same API
// as std's.
//
// condition_variable works with std::unique_lock<ums::mutex>; condition_variable_any works with any
// type that has lock() and unlock(). Both also have forms that take a predicate and end at a stop.
//
// Blocking:  a wait parks the fiber, never its processor; a plain kernel thread waits on a futex. A
//            notify never blocks, and may be called with or without the mutex. Not from a signal
//            handler.
// Fairness:  notify_one() wakes the longest waiter; notify_all() wakes all waiters in the order in
//            which they came. The mutex decides in which order they get it; ums::fair_mutex keeps
//            the order.
// Ordering:  what happens before a notify is visible after the wait that it ends. A waiter is
//            queued before its mutex is unlocked. So a caller that changes the state under the
//            mutex and notifies then or later finds the waiter.
// Timing:    a notify is never lost to a deadline or a stop that comes at the same time: either the
//            wait reports the notify, or the notify wakes the next waiter. A wait never ends
//            without a reason, except when a clock is set back while a caller waits against it.
// Lifetime:  may be destroyed as soon as all waiters have been notified, even if they have yet to
//            lock their mutexes again, and even if their deadlines pass meanwhile: a notified
//            waiter never touches the condition variable again.
// Errors:    wait() with a lock that is not held ends the program with a message. So does an
//            exception from locking again (std::terminate, as in std).
// Cost:      a notify costs two loads when nobody waits. With at most one waiter, a wait costs one
//            read-modify-write, a park, and what the mutex costs; a notify costs one
//            read-modify-write and the wake-up. With more waiters, or with a deadline or a stop,
//            each costs a short lock section instead. A lock type of your own adds one
//            read-modify-write on either side. While all waits come from one processor, they cost
//            nothing but the mutex; the first user from elsewhere then pays a system call, once.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "ums/deadline.hpp"
#include "ums/export.hpp"
#include "ums/impl/wait_list.hpp"
#include "ums/mutex.hpp"

namespace ums {

using std::cv_status;

namespace impl {

// The waiters; see src/sync/condition_variable.cpp.
struct condition_state {
    std::uintptr_t head = 0;
    wait_list waiters;
    std::uint32_t count = 0;  // With waiters.spare: see src/sched/lock/bias_count.hpp.
};

// A lock that only its user can release.
struct foreign_lock {
    void* lock;
    void (*unlock)(void*);
};

// The waits return whether they consumed a notify.
struct condition_calls {
    UMS_EXPORT static void notify_one(condition_state& c) noexcept;
    UMS_EXPORT static void notify_all(condition_state& c) noexcept;

    // Unlocks, waits and locks again.
    UMS_EXPORT static bool wait(condition_state& c, const std::unique_lock<mutex>& held,
                                deadline limit, const std::stop_token* stop) noexcept;
    // Unlocks and waits.
    UMS_EXPORT static bool wait(condition_state& c, foreign_lock held, deadline limit,
                                const std::stop_token* stop) noexcept;
};

// Unlike impl::until(), this does not try again: it would miss a notify between the two tries.
template <class Clock, class Duration>
cv_status status_of(bool notified, const std::chrono::time_point<Clock, Duration>& t) {
    if (notified) return cv_status::no_timeout;
    if constexpr (!std::is_same_v<Clock, deadline::clock>)
        if (is_ahead(t)) return cv_status::no_timeout;
    return cv_status::timeout;
}

// Waits until the predicate holds, or `wait` reports that the time has passed.
template <class Predicate, class Wait>
bool wait_for_predicate(Predicate& is_true, Wait wait) {
    while (!is_true())
        if (wait() == cv_status::timeout) return is_true();
    return true;
}

// The same until a stop.
template <class Predicate, class Wait>
bool wait_for_predicate(Predicate& is_true, const std::stop_token& stop, Wait wait) {
    while (!stop.stop_requested()) {
        if (is_true()) return true;
        if (wait() == cv_status::timeout) break;
    }
    return is_true();
}

}  // namespace impl

class condition_variable {
public:
    constexpr condition_variable() noexcept = default;
    condition_variable(const condition_variable&) = delete;
    condition_variable& operator=(const condition_variable&) = delete;

    // Wake the longest waiter, or all. They do nothing if nobody waits.
    void notify_one() noexcept { calls::notify_one(state_); }
    void notify_all() noexcept { calls::notify_all(state_); }

    // Unlocks the mutex, waits for a notify, and locks it again.
    void wait(std::unique_lock<mutex>& lock) {
        calls::wait(state_, lock, (deadline::max)(), nullptr);
    }

    // Waits until the predicate, called under the mutex, returns true.
    template <class Predicate>
    void wait(std::unique_lock<mutex>& lock, Predicate is_true) {
        while (!is_true()) wait(lock);
    }

    // Wait until `t`. Return no_timeout if a notify ended the wait, else timeout; with a predicate,
    // what it says at the end.
    template <class Clock, class Duration>
    cv_status wait_until(std::unique_lock<mutex>& lock,
                         const std::chrono::time_point<Clock, Duration>& t) {
        return impl::status_of(calls::wait(state_, lock, deadline_at(t), nullptr), t);
    }
    template <class Clock, class Duration, class Predicate>
    bool wait_until(std::unique_lock<mutex>& lock,
                    const std::chrono::time_point<Clock, Duration>& t, Predicate is_true) {
        return impl::wait_for_predicate(is_true, [&] { return wait_until(lock, t); });
    }

    // The same for a duration.
    template <class Rep, class Period>
    cv_status wait_for(std::unique_lock<mutex>& lock, const std::chrono::duration<Rep, Period>& d) {
        return wait_until(lock, deadline_after(d));
    }
    template <class Rep, class Period, class Predicate>
    bool wait_for(std::unique_lock<mutex>& lock, const std::chrono::duration<Rep, Period>& d,
                  Predicate is_true) {
        return wait_until(lock, deadline_after(d), std::move(is_true));
    }

    // Beyond std: these also end once a stop is requested, and return what the predicate says then.
    template <class Predicate>
    bool wait(std::unique_lock<mutex>& lock, const std::stop_token& stop, Predicate is_true) {
        return wait_until(lock, stop, (deadline::max)(), std::move(is_true));
    }
    template <class Clock, class Duration, class Predicate>
    bool wait_until(std::unique_lock<mutex>& lock, const std::stop_token& stop,
                    const std::chrono::time_point<Clock, Duration>& t, Predicate is_true) {
        return impl::wait_for_predicate(is_true, stop, [&] {
            return impl::status_of(calls::wait(state_, lock, deadline_at(t), &stop), t);
        });
    }
    template <class Rep, class Period, class Predicate>
    bool wait_for(std::unique_lock<mutex>& lock, const std::stop_token& stop,
                  const std::chrono::duration<Rep, Period>& d, Predicate is_true) {
        return wait_until(lock, stop, deadline_after(d), std::move(is_true));
    }

private:
    using calls = impl::condition_calls;
    impl::condition_state state_;
};

class condition_variable_any {
public:
    constexpr condition_variable_any() noexcept = default;
    condition_variable_any(const condition_variable_any&) = delete;
    condition_variable_any& operator=(const condition_variable_any&) = delete;

    // Wake the longest waiter, or all. They do nothing if nobody waits.
    void notify_one() noexcept { calls::notify_one(state_); }
    void notify_all() noexcept { calls::notify_all(state_); }

    // As those of condition_variable, for any lock that has lock() and unlock().
    template <class Lock>
    void wait(Lock& lock) {
        wait_once(lock, (deadline::max)(), nullptr);
    }
    template <class Lock, class Predicate>
    void wait(Lock& lock, Predicate is_true) {
        while (!is_true()) wait(lock);
    }

    template <class Lock, class Clock, class Duration>
    cv_status wait_until(Lock& lock, const std::chrono::time_point<Clock, Duration>& t) {
        return impl::status_of(wait_once(lock, deadline_at(t), nullptr), t);
    }
    template <class Lock, class Clock, class Duration, class Predicate>
    bool wait_until(Lock& lock, const std::chrono::time_point<Clock, Duration>& t,
                    Predicate is_true) {
        return impl::wait_for_predicate(is_true, [&] { return wait_until(lock, t); });
    }

    template <class Lock, class Rep, class Period>
    cv_status wait_for(Lock& lock, const std::chrono::duration<Rep, Period>& d) {
        return wait_until(lock, deadline_after(d));
    }
    template <class Lock, class Rep, class Period, class Predicate>
    bool wait_for(Lock& lock, const std::chrono::duration<Rep, Period>& d, Predicate is_true) {
        return wait_until(lock, deadline_after(d), std::move(is_true));
    }

    // These also end once a stop is requested, and return what the predicate says then.
    template <class Lock, class Predicate>
    bool wait(Lock& lock, std::stop_token stop, Predicate is_true) {
        return wait_until(lock, std::move(stop), (deadline::max)(), std::move(is_true));
    }
    template <class Lock, class Clock, class Duration, class Predicate>
    bool wait_until(Lock& lock, std::stop_token stop,
                    const std::chrono::time_point<Clock, Duration>& t, Predicate is_true) {
        return impl::wait_for_predicate(is_true, stop, [&] {
            return impl::status_of(wait_once(lock, deadline_at(t), &stop), t);
        });
    }
    template <class Lock, class Rep, class Period, class Predicate>
    bool wait_for(Lock& lock, std::stop_token stop, const std::chrono::duration<Rep, Period>& d,
                  Predicate is_true) {
        return wait_until(lock, std::move(stop), deadline_after(d), std::move(is_true));
    }

private:
    using calls = impl::condition_calls;

    template <class Lock>
    bool wait_once(Lock& lock, deadline limit, const std::stop_token* stop) noexcept {
        const impl::foreign_lock held{&lock, [](void* l) { static_cast<Lock*>(l)->unlock(); }};
        const bool notified = calls::wait(state_, held, limit, stop);
        lock.lock();  // From here on *this may have been destroyed.
        return notified;
    }

    impl::condition_state state_;
};

// Notifies all waiters and unlocks `lock` when the calling fiber has ended and its belongings are
// destroyed; on a plain thread among the destructors of its thread_local objects. A waiter must
// look at something that changed under the mutex, and may destroy the mutex and the condition
// variable when it has seen the change. Errors: as wait(). Cost: one allocation.
UMS_EXPORT void notify_all_at_fiber_exit(condition_variable& c, std::unique_lock<mutex> lock);

// The same under std's name.
inline void notify_all_at_thread_exit(condition_variable& c, std::unique_lock<mutex> lock) {
    notify_all_at_fiber_exit(c, std::move(lock));
}

}  // namespace ums
