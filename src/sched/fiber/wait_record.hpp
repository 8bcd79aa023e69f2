// SPDX-License-Identifier: MIT
#pragma once

// sched/fiber/wait_record.hpp: what a fiber waits for, in its descriptor.
//
// A wait (sched/fiber/wait.hpp) writes the record, and the scheduler does not depend on it. Each
// part has its readers:
//
//   what          the kind and the object, in one word: for readers from outside
//                 (runtime/root.hpp), for ums::fibers() and for a trace. There is none for a join
//                 (the joined fiber's joiner word names the waiter), for a public park
//                 (parkable::parked_user says so) nor for a sleep (a timer says so).
//   owner, count  of a wait without limit for a lock that another holds: for the deadlock report
//                 (sched/report/deadlock.cpp). The owner word's bits above the lowest three are the
//                 holder's parkable (for a lock that readers hold: a number, which is not an
//                 address). The count tells one wait from the next: it is odd while the fiber
//                 waits. A reader that finds the same odd count of the same fiber twice knows that
//                 the wait lasted all the time in between.
//   lends         of a wait for a mutex: for priority inheritance (sched/lock/urgency.hpp).

#include <cstdint>

#include "base/atomic.hpp"

namespace ums::sched {

struct lender;

// The numbers are part of the layout that runtime/root.hpp describes: never give one a new meaning.
enum class wait_kind : std::uint8_t {
    none = 0,
    mutex = 1,         // impl::mutex_state
    shared_mutex = 2,  // impl::shared_mutex_state, exclusively.
    shared_mutex_shared = 3,
    semaphore = 4,  // impl::semaphore_state
    condition = 5,  // impl::condition_state
    send = 6,       // impl::channel_state
    receive = 7,    // impl::channel_state
    select = 8,     // The number of cases.
    gate = 9,       // impl::gate_state: a latch, a wait_group or an event.
    barrier = 10,   // impl::barrier_state
    once = 11,      // impl::once_state
    scope = 12,     // ums::scope
    future = 13,    // The word of an impl::shared_state.
    readable = 14,  // The descriptor's number.
    writable = 15,  // The descriptor's number.
    offload = 16,   // A call on a thread of the off-load pool.
    resolve = 17,   // The same, for a name.
    shortage = 18,  // Descriptors are used up.
    permit = 19,    // sched::permits: to ums::blocking(), or to change a cluster.
};

struct wait_record {
    static constexpr unsigned kind_shift = 56;

    // The kind in the highest byte, the object's address (or the number) below; 0: it waits for
    // none of these.
    base::owned<std::uint64_t> what;
    base::atomic<const std::uintptr_t*> owner;
    base::atomic<std::uint64_t> count;
    lender* lends = nullptr;  // Guarded by urgency's lock.
};

}  // namespace ums::sched
