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

using reader_writer_lock = shared_lockable<shared_mutex_state, shared_mutex_calls>;

}  // namespace impl

// lock(), lock_shared() and their tries and unlocks as std's; and lock(std::stop_token),
// lock_shared(std::stop_token), which return false once a stop is requested and prefer the lock if
// both happen.
class shared_mutex : public impl::reader_writer_lock {
public:
    constexpr shared_mutex() noexcept = default;
};

// And try_lock_for(duration), try_lock_until(time_point), try_lock_shared_for(duration),
// try_lock_shared_until(time_point): false once the time has passed; they try at least once.
class shared_timed_mutex : public impl::shared_timed<impl::reader_writer_lock> {
public:
    constexpr shared_timed_mutex() noexcept = default;
};

using std::shared_lock;

}  // namespace ums
