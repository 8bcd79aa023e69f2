// SPDX-License-Identifier: MIT
#pragma once

// sched/queue/timer_pace.hpp: how often one processor looks at its deadlines, and how many it
// delivers at once. Used under carry/ownership.hpp.
//
// It looks when a round is over. Where switches are far apart a round of 61 would be late, so
// rounds get shorter while a deadline is pending. Sleepers whose deadline has passed are late
// already and go to the queue's front. But they get at most every other switch, because otherwise a
// flood of them would starve the others: one sleeper for two switches since the last look. And the
// sleepers fired last must have run first, or later deadlines would overtake them. The position of
// the front shows that, but creators of dispatched fibers move it, too; so it counts only for as
// many rounds as the fired ones may need at most.

#include <cstdint>

#include "os/clock.hpp"
#include "sched/queue/run_queue.hpp"

namespace ums::sched {

class timer_pace {
public:
    // How many deadlines are delivered at once, at most.
    static constexpr unsigned most = 32;

    // The length of the next round, in switches.
    [[nodiscard]] std::uint32_t round() const noexcept { return round_; }

    // Call when no deadline is pending.
    void rest() noexcept {
        round_ = run_queue::round;
        began_ = 0;
    }
    // The next deadline is at `next`, perhaps in the past. Returns how many may be delivered now
    // into the front of `queue`.
    [[nodiscard]] unsigned look(os::nanoseconds now, os::nanoseconds next,
                                const run_queue& queue) noexcept;

private:
    std::uint32_t round_ = run_queue::round;
    os::nanoseconds began_ = 0;  // When the last look was; 0: no deadline was pending then.
    std::uint32_t credit_ = 0;   // Switches since the last look that were not spent on a sleeper.
    std::uint32_t fired_from_ = 0;   // Where the queue's front was before the last sleepers came.
    std::uint32_t since_fired_ = 0;  // In rounds, up to a bound.
};

}  // namespace ums::sched
