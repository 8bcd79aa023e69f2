// SPDX-License-Identifier: MIT
#pragma once

// ums/mutex.hpp: mutual exclusion among fibers and kernel threads. Same API as std's.
//
// mutex, timed_mutex, recursive_mutex and recursive_timed_mutex let a running caller barge past the
// waiters. That is fastest when critical sections are short, because the lock does not stand idle
// until a woken fiber gets a processor. A waiter of a millisecond is handed the lock, and so is one
// that was woken overtakes_most times in vain. fair_mutex always hands the lock to the longest
// waiter: each unlock with waiters costs a switch, and the lock goes round in the order of arrival.
//
// Blocking:  lock() parks the fiber, never its processor; a plain kernel thread waits on a futex.
//            Where nothing else could run meanwhile, lock() of a barging mutex first looks again
//            for some microseconds. unlock() and try_lock() never block. Not from a signal handler.
// Priority:  in a cluster whose policy has priorities (policy_kind::priority), the holder is as
//            urgent as the most urgent waiter. If it waits for another mutex itself, so is the
//            holder of that, and so on. A waiter that gives up takes back what it lent. unlock()
//            of any but a fair_mutex wakes the most urgent first, but after overtakes_most such
//            passes the one that was passed over. Waiters of clusters without priorities have
//            priority 0.
// Fairness:  mutex: the first waiter is woken, and stays in front if another was faster. An
//            unlock() hands it the lock once it has waited for 1 ms in all, 100 us of them as the
//            first; or after overtakes_most attempts. Callers that overtake it look at the clock
//            every 40 us or sooner. Where sections suddenly grow, up to 256 go by before a look.
//            fair_mutex: first come, first served.
// Ordering:  what happens before an unlock() is visible after the lock() that follows it.
// Lifetime:  the last holder may destroy the mutex as soon as its unlock() has returned. So may a
//            fiber that has just locked and unlocked it, even while the unlock() that let it in is
//            still returning.
// Errors:    lock() by the owner of a mutex that is not recursive throws std::system_error,
//            resource_deadlock_would_occur. unlock() by anyone but the owner ends the program with
//            a message that names the caller. lock() of a recursive mutex more than 2^32 - 1 deep
//            throws resource_unavailable_try_again; its try_ forms return false then.
// Cost:      lock and unlock cost one compare-and-swap each when nobody waits.

#include <cstdint>
#include <mutex>
#include <stop_token>

#include "ums/deadline.hpp"
#include "ums/export.hpp"
#include "ums/impl/lockable.hpp"
#include "ums/impl/wait_list.hpp"

namespace ums {

namespace impl {

// See src/sync/mutex.cpp.
struct mutex_state {
    std::uintptr_t owner = 0;  // The holder, with three flags in the low bits.
    wait_list waiters;
    // The holder's:
    std::int32_t until_look = 0;  // How many overtake a waiter before one looks at the clock.
    std::uint32_t depth = 0;      // Of a recursive mutex: how often it is held.
};

enum class handover : bool { barging, fair };

template <handover>
struct mutex_calls {
    UMS_EXPORT static void lock(mutex_state& m);
    UMS_EXPORT static bool try_lock(mutex_state& m) noexcept;
    UMS_EXPORT static bool lock_until(mutex_state& m, deadline limit);
    UMS_EXPORT static bool lock_or_stop(mutex_state& m, deadline limit,
                                        const std::stop_token& stop);
    UMS_EXPORT static void unlock(mutex_state& m) noexcept;
};

UMS_EXPORT bool is_held_by_caller(const mutex_state& m) noexcept;
[[noreturn]] UMS_EXPORT void throw_too_deep();

}  // namespace impl

// How often a waiter of a barging mutex may be woken in vain before it is handed the lock.
inline constexpr unsigned overtakes_most = 16;

namespace impl {

// The owner may lock it again, and must unlock it as often.
struct recursive_calls {
    static void lock(mutex_state& m) {
        if (again(m)) return;
        calls::lock(m);
        m.depth = 1;
    }
    static bool try_lock(mutex_state& m) noexcept {
        if (is_held_by_caller(m)) return deeper(m);
        return first(m, calls::try_lock(m));
    }
    static bool lock_until(mutex_state& m, deadline limit) {
        if (is_held_by_caller(m)) return deeper(m);
        return first(m, calls::lock_until(m, limit));
    }
    static bool lock_or_stop(mutex_state& m, deadline limit, const std::stop_token& stop) {
        return again(m) || first(m, calls::lock_or_stop(m, limit, stop));
    }
    static void unlock(mutex_state& m) noexcept {
        // A caller that does not own it must not touch the depth; unlock() below reports it.
        if (is_held_by_caller(m) && --m.depth != 0) return;
        calls::unlock(m);
    }

private:
    using calls = mutex_calls<handover::barging>;
    static constexpr std::uint32_t most = ~std::uint32_t{0};

    static bool again(mutex_state& m) {
        if (!is_held_by_caller(m)) return false;
        if (!deeper(m)) throw_too_deep();
        return true;
    }
    static bool deeper(mutex_state& m) noexcept { return m.depth != most && ++m.depth != 0; }
    static bool first(mutex_state& m, bool locked) noexcept {
        if (locked) m.depth = 1;
        return locked;
    }
};

using barging_lock = lockable<mutex_state, mutex_calls<handover::barging>>;
using fair_lock = lockable<mutex_state, mutex_calls<handover::fair>>;
using recursive_lock = lockable<mutex_state, recursive_calls>;

}  // namespace impl

// Has std's lock(), try_lock() and unlock(). lock(std::stop_token) returns false once a stop is
// requested; if the lock and a stop come at once, the lock wins.
class mutex : public impl::barging_lock {
public:
    constexpr mutex() noexcept = default;
};

// Also has try_lock_for(duration) and try_lock_until(time_point), which return false once the time
// has passed. They try at least once.
class timed_mutex : public impl::timed<impl::barging_lock> {
public:
    constexpr timed_mutex() noexcept = default;
};

// First come, first served. Also has the timed forms.
class fair_mutex : public impl::timed<impl::fair_lock> {
public:
    constexpr fair_mutex() noexcept = default;
};

// The owner may lock it again, and must unlock it as often.
class recursive_mutex : public impl::recursive_lock {
public:
    constexpr recursive_mutex() noexcept = default;
};

class recursive_timed_mutex : public impl::timed<impl::recursive_lock> {
public:
    constexpr recursive_timed_mutex() noexcept = default;
};

// std's own types and functions, which work with any of the mutexes above.
using std::adopt_lock;
using std::adopt_lock_t;
using std::defer_lock;
using std::defer_lock_t;
using std::lock;
using std::lock_guard;
using std::scoped_lock;
using std::try_lock;
using std::try_to_lock;
using std::try_to_lock_t;
using std::unique_lock;

}  // namespace ums
