// SPDX-License-Identifier: MIT
#pragma once

// sched/run/unused_pages.hpp: gives back to the kernel what fibers that have been parked for long
// do not use of their stacks.
//
// A fiber that once called deeply would keep those pages as long as it lives. To give them back at
// each park would cost a system call, and a page fault at the next deep call: servers that do it
// lose half their throughput. So a processor that has nothing to run looks at all fibers now and
// then. It marks those that it finds parked (parkable::found_parked). A wake-up takes the mark away
// in the compare-and-swap that it makes anyway, so a fiber that still has it at the next look has
// been parked all the time between. It is taken aside, as for a backtrace, and the pages below its
// stack pointer go.
//
// Looks are `period` apart, further if they take more than a hundredth of the time. After the last
// processor has become idle there are two more: one that marks, one that gives back. Then nothing
// wakes up until a fiber has run. As long as no processor ever becomes idle, nobody looks.
// A fiber parked by park_holding(), in a channel or a condition variable, has no parked bit. There
// the mark makes the waker take a longer way, once (end_hold()). A fiber in join() has
// parked in another's word, and keeps its pages.

#include "base/atomic.hpp"
#include "os/clock.hpp"

namespace ums::sched {

struct unused_pages {
    // Tests shorten it.
    static inline constinit base::atomic<os::nanoseconds> period{4'000'000'000};

    // Call it where a processor has run out of work.
    static void have_run() noexcept {
        if (!have_run_.load(base::relaxed)) [[unlikely]]
            note_run();
    }

    // Call it outside any processor's ownership, from a carrier that runs no fiber and is about to
    // wait. If it is time, looks at a part of the fibers, for some 50 us, so that the caller can
    // see whether there is work for it now. What it finds woken it makes ready. Returns when to
    // call again, which has passed if there are more parts; never if no fiber has run since the
    // last looks, or if another carrier looks now.
    static os::nanoseconds look() noexcept {
        const os::nanoseconds due = due_.load(base::relaxed);
        return due == os::never ? due : look_if_due(due);
    }

    // Begins anew, also if a look was going on, as in the child of a fork(). If the pages are
    // `kept`, nobody looks. Requires: one thread.
    static void begin(bool kept) noexcept;

private:
    static void note_run() noexcept;
    static os::nanoseconds look_if_due(os::nanoseconds due) noexcept;
    static void end_look(os::nanoseconds now) noexcept;

    static inline constinit base::atomic<os::nanoseconds> due_{os::never};
    static inline constinit base::atomic<bool> have_run_{false};
};

}  // namespace ums::sched
