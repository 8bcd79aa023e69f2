// SPDX-License-Identifier: MIT
#pragma once

// ums/shared_mutex.hpp: held by one writer or by many readers. Same API as std's.
//
// Blocking:  lock() and lock_shared() park the fiber, never its processor; a plain kernel thread
//            waits on a futex. Unlocks and tries never block. Not from a signal handler.
// Fairness:  first come, first served, and nobody overtakes the queue, so neither side starves.
//            Readers that are next to each other in the queue go in together. While anybody waits,
//            a try fails.
// Ordering:  what happens before an unlock() is visible after the lock() or lock_shared() that
//            follows it, and what happens before an unlock_shared() after the lock() that follows
//            it.
// Lifetime:  may be destroyed by whoever holds it last, as soon as its unlock has returned, and by
//            who has locked it exclusively after all others, even while the unlock that let it in
//            is still returning.
// Errors:    lock() and lock_shared() by the writer that holds it: std::system_error,
//            resource_deadlock_would_occur. unlock() by anyone else, and unlock_shared() while no
//            reader holds it, end the program with a message that names the caller. A reader that
//            locks again is not noticed: it waits for ever if a writer has come between.
// Cost:      each lock and each unlock one compare-and-swap when nobody waits. A hand-over to the
//            queue, one short lock section and a wake-up for each that goes in.

#include <chrono>
#include <cstdint>
#include <shared_mutex>
#include <stop_token>

#include "ums/deadline.hpp"
#include "ums/export.hpp"
#include "ums/impl/wait_list.hpp"
#include "ums/mutex.hpp"

namespace ums {

namespace impl {

// Who holds it, with two flags in the low bits; see src/sync/shared_mutex.cpp.
struct shared_mutex_state {
    std::uintptr_t holder = 0;
    wait_list waiters;
};

struct shared_mutex_calls {
    UMS_EXPORT static void lock(shared_mutex_state& m);
    UMS_EXPORT static bool try_lock(shared_mutex_state& m) noexcept;
    UMS_EXPORT static bool lock_until(shared_mutex_state& m, deadline limit);
    UMS_EXPORT static bool lock_or_stop(shared_mutex_state& m, deadline limit,
                                        const std::stop_token& stop);
    UMS_EXPORT static void unlock(shared_mutex_state& m) noexcept;

    UMS_EXPORT static void lock_shared(shared_mutex_state& m);
    UMS_EXPORT static bool try_lock_shared(shared_mutex_state& m) noexcept;
    UMS_EXPORT static bool lock_shared_until(shared_mutex_state& m, deadline limit);
    UMS_EXPORT static bool lock_shared_or_stop(shared_mutex_state& m, deadline limit,
                                               const std::stop_token& stop);
    UMS_EXPORT static void unlock_shared(shared_mutex_state& m) noexcept;

    // Whether the caller is the writer; whether readers hold it.
    UMS_EXPORT static bool is_writer(const shared_mutex_state& m) noexcept;
    UMS_EXPORT static bool is_read(const shared_mutex_state& m) noexcept;
};

}  // namespace impl

class shared_mutex {
public:
    constexpr shared_mutex() noexcept = default;
    shared_mutex(const shared_mutex&) = delete;
    shared_mutex& operator=(const shared_mutex&) = delete;

    void lock() { calls::lock(state_); }
    [[nodiscard]] bool try_lock() noexcept { return calls::try_lock(state_); }
    void unlock() noexcept { calls::unlock(state_); }

    void lock_shared() { calls::lock_shared(state_); }
    [[nodiscard]] bool try_lock_shared() noexcept { return calls::try_lock_shared(state_); }
    void unlock_shared() noexcept { calls::unlock_shared(state_); }

    // Lock it, or return false once a stop is requested. Prefer the lock if both happen.
    [[nodiscard]] bool lock(const std::stop_token& stop) {
        return calls::lock_or_stop(state_, deadline::max(), stop);
    }
    [[nodiscard]] bool lock_shared(const std::stop_token& stop) {
        return calls::lock_shared_or_stop(state_, deadline::max(), stop);
    }

private:
    using calls = impl::shared_mutex_calls;
    impl::shared_mutex_state state_;
};

class shared_timed_mutex {
public:
    constexpr shared_timed_mutex() noexcept = default;
    shared_timed_mutex(const shared_timed_mutex&) = delete;
    shared_timed_mutex& operator=(const shared_timed_mutex&) = delete;

    void lock() { calls::lock(state_); }
    [[nodiscard]] bool try_lock() noexcept { return calls::try_lock(state_); }
    void unlock() noexcept { calls::unlock(state_); }

    void lock_shared() { calls::lock_shared(state_); }
    [[nodiscard]] bool try_lock_shared() noexcept { return calls::try_lock_shared(state_); }
    void unlock_shared() noexcept { calls::unlock_shared(state_); }

    [[nodiscard]] bool lock(const std::stop_token& stop) {
        return calls::lock_or_stop(state_, deadline::max(), stop);
    }
    [[nodiscard]] bool lock_shared(const std::stop_token& stop) {
        return calls::lock_shared_or_stop(state_, deadline::max(), stop);
    }

    // False once the time has passed. Try at least once.
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period>& d) {
        return calls::lock_until(state_, deadline_after(d));
    }
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration>& t) {
        return impl::until(t, [this](deadline limit) { return calls::lock_until(state_, limit); });
    }
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_shared_for(const std::chrono::duration<Rep, Period>& d) {
        return calls::lock_shared_until(state_, deadline_after(d));
    }
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_shared_until(const std::chrono::time_point<Clock, Duration>& t) {
        return impl::until(
            t, [this](deadline limit) { return calls::lock_shared_until(state_, limit); });
    }

private:
    using calls = impl::shared_mutex_calls;
    impl::shared_mutex_state state_;
};

using std::shared_lock;

}  // namespace ums
