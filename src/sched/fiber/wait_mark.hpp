// SPDX-License-Identifier: MIT
#pragma once

// sched/fiber/wait_mark.hpp: what a fiber waits for, in one word of its descriptor.
//
// A mark for readers from outside (runtime/root.hpp), for ums::fibers() and for the records of a
// trace:
// nothing depends on it. The wait's slow path stores it right before the fiber parks, and clears it
// when the fiber runs again. Cost: two plain stores for each wait, into a cache line that the
// fiber's waker touches anyway.
//
// There is no mark for a join (the joined fiber's joiner word names the waiter), for a public park
// (parkable::parked_user says so) nor for a sleep (a timer and no mark).

#include <cstdint>

#include "base/atomic.hpp"
#include "sched/fiber/parkable.hpp"

namespace ums::sched {

struct fiber;

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
    permit = 19,    // sched::permits: a carrier for ums::blocking().
};

// The kind in the highest byte, the object's address (or the number) below.
struct wait_mark {
    static constexpr unsigned kind_shift = 56;

    base::owned<std::uint64_t> word;

    void set(wait_kind kind, std::uint64_t what) noexcept {
        word.set(std::uint64_t{static_cast<std::uint8_t>(kind)} << kind_shift | what);
    }
    void clear() noexcept { word.set(0); }
};

}  // namespace ums::sched
