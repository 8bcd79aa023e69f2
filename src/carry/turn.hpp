// SPDX-License-Identifier: MIT
#pragma once

// carry/turn.hpp: what a carrier's kernel thread waits for while it has no processor.
//
// Each state, what the thread and its fiber do in it, and what may follow, with its setter.
//
// waits      sleeps: it is a spare, or stands by (sched/block/keep.hpp), or its fiber has run on
//            and returns. Its fiber: none, or in a queue; parked, if the fiber keeps the carrier.
//   holds      a thread that gives it a processor
//   given      a processor that has reached its place
//   shall_end  the pool
// holds      runs. Its fiber: runs, or none.
//   waits      the thread itself, as a spare
//   stopped    the thread itself, in the signal's handler
//   shall_end  the thread itself, as it retires
// stopped    sleeps in the signal's handler. Its fiber: in a queue, or on the pool's list of
//            stopped ones.
//   given      a carrier that has reached its place, or takes it off that list for a processor
//   holds      a thread that takes it off that list to release it
//   runs_on    a thread that releases it from a queue
// given      sleeps, or wakes up. Its fiber: is about to run.
//   holds      the carrier that gives it the processor
// runs_on    runs, without a processor. Its fiber: runs; its place in the queue or list stays.
//   holds      a processor that has reached its place, or a thread that takes it off the list
//   waits      the thread itself, when it needs a processor
// shall_end  ends. Its fiber: none.
//   waits, holds  a new kernel thread
//
// A stopped fiber that gets no turn while nothing else switches is released (sched/block/stop.hpp),
// so a stop never deadlocks a program that would not deadlock with kernel threads. It cannot be
// taken out of whichever queue or policy it is in, so its place stays there: the processor that
// reaches the place finds that the fiber runs, and takes the next one.

#include <cstdint>

#include "base/assert.hpp"
#include "base/atomic.hpp"
#include "base/look_inside.hpp"
#include "os/futex.hpp"

namespace ums::carry {

class turn_word {
public:
    enum state : std::uint32_t { waits, holds, stopped, given, runs_on, shall_end };

    [[nodiscard]] state now() const noexcept {
        // sync(carrier.turn): sees the processor that the carrier was given.
        return static_cast<state>(word_.load(base::acquire));
    }

    // For a thread that alone may write the word: the carrier's own, or the one that has taken the
    // carrier out of a list.
    void set(state next) noexcept {
        // relaxed: only the order of this one word matters for the check.
        check(static_cast<state>(word_.load(base::relaxed)), next);
        // sync(carrier.turn): publishes the processor.
        word_.store(next, base::release);
    }

    // For a word that two threads may write: returns true if it was `from` and is now `to`.
    // Otherwise stores in `from` what it is.
    [[nodiscard]] bool change(state& from, state to) noexcept {
        check(from, to);
        auto seen = static_cast<std::uint32_t>(from);
        // sync(carrier.turn): publishes the processor, or sees it.
        const bool done = word_.compare_exchange(seen, to, base::acq_rel, base::acquire);
        from = static_cast<state>(seen);
        return done;
    }

    // Sleeps while the word is `seen`, at most until `limit`. Returns false if the limit has
    // passed.
    bool wait_while(state seen, os::nanoseconds limit = os::never) const noexcept {
        return os::futex_wait(word_, seen, limit);
    }
    void wake() noexcept { os::futex_wake(word_.address()); }

private:
    friend struct ums::look_inside;
    static void check(state from, state to) noexcept {
        constexpr auto bit = [](state s) { return 1u << s; };
        constexpr unsigned may_follow[] = {
            bit(holds) | bit(given) | bit(shall_end) | bit(waits),    // waits
            bit(waits) | bit(stopped) | bit(shall_end) | bit(holds),  // holds
            bit(given) | bit(holds) | bit(runs_on),                   // stopped
            bit(holds),                                               // given
            bit(holds) | bit(waits),                                  // runs_on
            bit(waits) | bit(holds),                                  // shall_end
        };
        UMS_ASSERT((may_follow[from] & bit(to)) != 0,
                   "a carrier's turn took a way it must not take");
    }

    base::atomic<std::uint32_t> word_;
};

}  // namespace ums::carry
