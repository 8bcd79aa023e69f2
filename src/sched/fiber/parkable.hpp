// SPDX-License-Identifier: MIT
#pragma once

// sched/fiber/parkable.hpp: what can park: a fiber, or a plain kernel thread.
//
// One atomic word decides every race between going to sleep and being woken. Its bits:
//
//   parked       waits for wake(): a wait inside the library (join, a lock).
//   parked_user  waits for unpark(): the public this_fiber::park().
//   token        a wake() came while it was not parked: the next internal park returns at once.
//   token_user   an unpark() came while it was not in a public park: the next one returns at once.
//   expired      the deadline of the wait in progress passed before the park was complete.
//   stopped      the same for its stop token.
//   by_deadline, by_stop   what ended the park that was just left, if not a wake-up. The waiter
//                clears it as soon as it runs again.
//   found_parked, has_given_back   what unused_pages (sched/run/unused_pages.hpp) notes about the
//                park in progress. They go with its bit.
//   is_looked_at, is_awaited   unused_pages holds a fiber parked by park_holding() still; somebody
//                has ended its park meanwhile.
//
// Internal and public waits have separate tokens, so a join() can never consume a user's unpark().
//
// At most one of parked and parked_user is set, and only by commit(), which runs after the
// registers of the fiber are saved (on the stack that was switched to): a thread that sees the bit
// may resume the fiber. Exactly one compare-and-swap clears the bit, of a wake, an unpark, a
// deadline or a stop, and it stores the reason in the same step. The winner owns the fiber until it
// is in a queue; losers leave a token or a mark. A fiber parked by park_holding()
// (sched/run/park.hpp) sets no bit, but is_held: the list in which it waits, under its lock, says
// which thread owns it.
//
// Why no wake-up is lost: a waiter publishes its wish (a queue entry, a joiner word), then
// commit()s. A waker makes the condition true, then wakes. Both end in a read-modify-write of this
// word, and these are totally ordered. If commit() comes first, the waker sees parked and resumes
// the waiter. If the waker comes first, it leaves a token, and commit() fails and consumes it. A
// wake that finds a token still performs its compare-and-swap: it must be ordered before the
// consumption of that token (an exchange), after which the condition is read again.

#include <cstdint>

#include "base/atomic.hpp"

namespace ums::sched {

// Aligned so that its address leaves room for the flags of a lock's word.
struct alignas(8) parkable {
    enum bits : std::uint32_t {
        parked = 1,
        parked_user = 2,
        token = 4,
        token_user = 8,
        expired = 16,
        stopped = 32,
        by_deadline = 64,
        by_stop = 128,
        found_parked = 256,
        has_given_back = 512,
        is_looked_at = 1024,
        is_awaited = 2048,
    };
    static constexpr std::uint32_t any_parked = parked | parked_user;
    static constexpr std::uint32_t of_the_park = any_parked | found_parked | has_given_back;
    static constexpr std::uint32_t of_a_held_park = found_parked | has_given_back | is_looked_at;

    enum class reason : std::uint8_t { wake, deadline, stop };

    explicit parkable(bool fiber) noexcept : is_fiber{fiber} {}

    base::atomic<std::uint32_t> word;

    // Set once, then read-only:
    const bool is_fiber;

    // For a fiber: whether pinned_to is set. It is here, in the cache line that a switch touches
    // anyway.
    base::owned<bool> is_pinned;

    // For a fiber: it has not run yet.
    base::owned<bool> is_new;

    // It is parked by park_holding(), or about to be. Written inside a processor's ownership, or
    // under the lock of the list.
    base::owned<bool> is_held;
};

}  // namespace ums::sched
