// SPDX-License-Identifier: MIT
#pragma once

// sched/search.hpp: what a processor does when it has nothing to run.
//
// In order: its own timers, queue, policy and inboxes; a raid on others (half of a random victim's
// queue; nearest cache first when processors are pinned to CPUs); a bounded spin while others run;
// then the idle set and a wait in the driver. No periodic wake-up while all are idle.
//
// The watcher. One idle processor, while others run, also looks after them: it wakes at their earliest
// deadline, and samples them after 50 us, then twice that, up to 10 ms. It takes
// what lies in a queue, and timers that are due; and from one that has not switched since the last
// sample, and so is stuck in a long computation, also the fiber in the run-next slot. When all are idle the watcher sleeps for the earliest
// deadline only. So two fibers that wake each other on one processor need no wake-up of another, and
// yet a fiber that was made ready by one that then computes for a second is not stranded.

#include "sched/carrier.hpp"
#include "sched/processor.hpp"

namespace ums::sched {

// Called by a carrier that is about to wait, when all processors of its cluster are idle and have no
// deadline. Null: not. Set before a runtime starts.
extern void (*on_standstill)() noexcept;

struct search {
    // Finds the next fiber, waiting as long as it takes. Called and returns inside `p`. Null: the
    // processor shall retire.
    static fiber* find(processor& p, carrier& c) noexcept;

    // Moves everything that is queued at a retiring processor to the cluster's others. Inside.
    static void give_all_away(processor& p) noexcept;

    // Tells the watcher, or makes one, if an idle processor should look after the running ones and
    // does not: after a fiber went into the run-next slot, after a deadline earlier than the watcher's.
    static void alert_watcher(cluster& home) noexcept;

    // `p` goes on to run something with the deadline `until` pending: tells the watcher if that is
    // earlier than what it waits for.
    static void tell_watcher(processor& p, os::nanoseconds until) noexcept;

private:
    static fiber* raid(processor& thief, bool stranded_too) noexcept;
    static bool rob(processor& thief, processor& victim, bool stranded_too) noexcept;
    static fiber* spin(processor& p) noexcept;
    static void fire_timers_of_others(processor& p) noexcept;
    static void stop_searching(processor& p) noexcept;
    static bool wait(processor& p) noexcept;
    static bool watch(processor& p) noexcept;
    static os::nanoseconds earliest_deadline(const cluster& home) noexcept;
    static bool others_run(const cluster& home) noexcept;
    static bool nothing_can_run(const cluster& home) noexcept;
    static bool sees_stuck_work(processor& watcher) noexcept;
    static bool must_look_again(processor& p) noexcept;
};

}  // namespace ums::sched
