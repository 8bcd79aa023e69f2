// SPDX-License-Identifier: MIT
#pragma once

// ums/shared_mutex.hpp: a mutex held by one writer or by many readers. Same API as std's.
//
// Blocking:  lock() and lock_shared() park the fiber, never its processor; a plain kernel thread
//            waits on a futex. Unlocks and tries never block. Not from a signal handler.
// Fairness:  first come, first served; nobody overtakes the queue, so neither side starves. Readers
//            that stand next to each other in the queue go in together. While anybody waits, a try
//            fails.
// Ordering:  what happens before an unlock() is visible after the lock() or lock_shared() that
//            follows it. What happens before an unlock_shared() is visible after the lock() that
//            follows it.
// Lifetime:  the last holder may destroy the mutex as soon as its unlock has returned. So may a
//            caller that has locked it exclusively after all others, even while the unlock that let
//            it in is still returning.
// Errors:    lock() and lock_shared() by the writer that holds it throw std::system_error,
//            resource_deadlock_would_occur. unlock() by anyone else, and unlock_shared() while no
//            reader holds it, end the program with a message that names the caller. A reader that
//            locks again is not noticed: it waits for ever if a writer has come in between.
// Cost:      one compare-and-swap for each lock and each unlock when nobody waits. A hand-over to
//            the queue costs one short lock section, and a wake-up for each caller that goes in.

#include <cstdint>
#include <shared_mutex>
#include <stop_token>

#include "ums/deadline.hpp"
#include "ums/export.hpp"
#include "ums/impl/lockable.hpp"
#include "ums/impl/wait_list.hpp"
#include "ums/mutex.hpp"

namespace ums {

namespace impl {

// The holders, with two flags in the low bits; see src/sync/shared_mutex.cpp.
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

    // is_writer: whether the caller is the writer. is_read: whether readers hold it.
    UMS_EXPORT static bool is_writer(const shared_mutex_state& m) noexcept;
    UMS_EXPORT static bool is_read(const shared_mutex_state& m) noexcept;
};

using reader_writer_lock = shared_lockable<shared_mutex_state, shared_mutex_calls>;

}  // namespace impl

// Has std's lock(), lock_shared(), their tries and their unlocks. lock(std::stop_token) and
// lock_shared(std::stop_token) return false once a stop is requested; if the lock and a stop come
// at once, the lock wins.
class shared_mutex : public impl::reader_writer_lock {
public:
    constexpr shared_mutex() noexcept = default;
};

// Also has try_lock_for(duration), try_lock_until(time_point), try_lock_shared_for(duration) and
// try_lock_shared_until(time_point), which return false once the time has passed. They try at least
// once.
class shared_timed_mutex : public impl::shared_timed<impl::reader_writer_lock> {
public:
    constexpr shared_timed_mutex() noexcept = default;
};

using std::shared_lock;

}  // namespace ums
