// SPDX-License-Identifier: MIT
#pragma once

// sched/run/search.hpp: what a processor does when it has nothing to run.
//
// In this order: it looks at its own timers, queue, policy and inboxes; it raids others (the
// oldest of a random victim; nearest cache first if processors are pinned to CPUs); it spins for a
// bounded time while others run; then it joins the idle set and waits in the driver. There is no
// periodic wake-up while all are idle.
//
// Where it waits: the last one to become idle waits in the engine, the others in their own futex.
// So as long as one processor can do the work, events come to that one, whose cache is warm, and no
// other is woken. While it runs nobody is inside; it polls when it has nothing to run, and at the
// end of its rounds, which take 50 us at most if runs last as before (processor::note_runs()). Nor
// is another woken for a few ready fibers: only when one has waited as long as a wake-up costs
// (processor::has_waited()).
//
// The watcher: where runs are long, one idle processor looks after those that run. It waits in the
// engine, and wakes at their earliest deadline. It takes timers that are due, and what lies in a
// queue; from a processor that has not switched between two samples, and so is stuck in a long
// computation, also the fiber in the run-next slot. It samples only while something waits there: a
// processor that makes a fiber ready asks it, and the samples come at once, after 100 us, then
// after twice that, up to 10 ms. When all are idle it sleeps for the earliest deadline only. Runs
// are long where a processor's last ones were, or where the detector finds the same one twice
// (sched/block/detection.cpp); without a detector, and under a policy of the application's, a
// cluster always has a watcher while one is idle. So two fibers that wake each other on one
// processor need no wake-up of another, and yet a fiber is not stranded if the one that made it
// ready then computes for a second.
//
// Why events are not left to nobody: the word of the idle set orders those that become idle, and
// the last one, which sees that nobody runs, goes inside, or finds there another that is idle, too.
// One that is inside leaves only to run, and looks again when it has nothing more to run; or to
// retire, and then remove_processor() wakes the first. A processor that runs on, or is blocked
// where no carrier is left to take it over, is found by the detector.

#include "sched/run/carrier.hpp"
#include "sched/run/processor.hpp"

namespace ums::sched {

// A carrier that waits calls this when all processors of its cluster have been idle for a while and
// have no deadline. Returns whether to ask again after as long. Null if it does not. Set before a
// runtime starts.
extern bool (*on_standstill)() noexcept;

struct search {
    // Finds the next fiber, waiting as long as it takes. Called inside `p`, and returns inside it.
    // Null if the processor is to retire.
    static fiber* find(processor& p, carrier& c) noexcept;

    // Moves everything that is queued at a retiring processor to the cluster's others. Call it
    // inside.
    static void give_all_away(processor& p) noexcept;

    // Whether all of its processors are idle and have no deadline, and none of its fibers is
    // blocked in the kernel.
    static bool nothing_can_run(const cluster& home) noexcept;

    // A fiber went into a run-next slot, or waits where runs are long: the watcher is to look, or
    // an idle processor becomes the watcher.
    static void ask_watcher(cluster& home) noexcept;

    // Whether the cluster needs a watcher for `p`. By its carrier, or the detector. If this returns
    // true, ask_watcher() follows: the watcher may have gone to sleep when it was not needed. By
    // the carrier once it knows what it runs next, or the one that is woken may preempt it, and
    // take its timers.
    static bool set_runs_long(processor& p, bool it_does) noexcept;

    // `p` continues to run something with the deadline `until` pending: tells the watcher if that
    // is earlier than what it waits for.
    static void tell_watcher(processor& p, os::nanoseconds until) noexcept;

private:
    static fiber* raid(processor& thief, bool stranded_too) noexcept;
    static bool rob(processor& thief, processor& victim, bool stranded_too) noexcept;
    static fiber* spin(processor& p) noexcept;
    static void fire_timers_of_others(processor& p) noexcept;
    static void stop_searching(processor& p) noexcept;
    // What other processors need of one that was idle.
    enum class needed : unsigned char { none, by_timers, by_stuck_work };
    static needed wait(processor& p) noexcept;
    static needed watch(processor& p) noexcept;
    static void wait_in_driver(processor& p, os::nanoseconds until, bool inside) noexcept;
    static void alert_watcher(cluster& home) noexcept;
    [[nodiscard]] static bool any_waits(const cluster& home) noexcept;
    static os::nanoseconds earliest_deadline(const cluster& home) noexcept;
    static bool others_run(const cluster& home) noexcept;
    enum class seen : unsigned char { nothing, waiting, stuck };
    static seen take_sample(processor& watcher) noexcept;
    [[nodiscard]] static bool is_asked_again(cluster& home) noexcept;
    static bool must_look_again(processor& p) noexcept;
};

}  // namespace ums::sched
