// SPDX-License-Identifier: MIT
#pragma once

// carry/turn.hpp: what a carrier's kernel thread waits for while it has no processor.
//
// state     the thread                       its fiber                 the next state, and who sets it
// waits     sleeps: a spare, or its fiber    none, or in a queue, or   holds: whoever gives it a processor
//           has run on and comes back, or    parked, if it keeps its   given: a processor that has come to its place
//           it stands by (sched/keep.hpp)    carrier                   shall_end: the pool
// holds     runs                             runs, or none             waits: itself, as a spare
//                                                                      stopped: itself, in the signal's handler
//                                                                      shall_end: itself, as it retires
// stopped   sleeps in the signal's handler   in a queue, or on the     given: whoever has come to its place, or takes it
//                                            pool's list of stopped      off that list for a processor
//                                                                      holds: whoever takes it off that list to release it
//                                                                      runs_on: whoever releases it from a queue
// given     sleeps, or wakes                 is about to run           holds: whoever gives it the processor
// runs_on   runs, without a processor        runs; its place in the    holds: a processor that has come to its place, or
//                                            queue or list stays         whoever takes it off the list
//                                                                      waits: itself, when it needs a processor
// shall_end ends                             none                      waits, holds: a new kernel thread
//
// A stopped fiber that gets no turn while nothing else switches is released (sched/stop.hpp): so a stop never
// deadlocks a program that would not deadlock with kernel threads. It cannot be taken out of whichever queue or
// policy it is in, so its place stays there: the processor that comes to it finds that the fiber runs, and goes on.

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
        // sync(carrier.turn): sees the processor that it was given.
        return static_cast<state>(word_.load(base::acquire));
    }

    // For whoever may write the word alone: the thread itself, or the one that has taken it out of a list.
    void set(state next) noexcept {
        // relaxed: only the order of this one word matters for the check.
        check(static_cast<state>(word_.load(base::relaxed)), next);
        // sync(carrier.turn): publishes the processor.
        word_.store(next, base::release);
    }

    // Where two may write: true if it was `from` and is `to`. Else `from` is what it is.
    [[nodiscard]] bool change(state& from, state to) noexcept {
        check(from, to);
        auto seen = static_cast<std::uint32_t>(from);
        // sync(carrier.turn): publishes the processor, or sees it.
        const bool done = word_.compare_exchange(seen, to, base::acq_rel, base::acquire);
        from = static_cast<state>(seen);
        return done;
    }

    // Sleeps while it is `seen`, at most until `limit`. False: the limit has passed.
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
        UMS_ASSERT((may_follow[from] & bit(to)) != 0, "a carrier's turn took a way it must not take");
    }

    base::atomic<std::uint32_t> word_;
};

}  // namespace ums::carry
