// SPDX-License-Identifier: MIT
#pragma once

// sched/block/keep.hpp: a fiber that keeps its carrier. The public face is ums/keep_carrier.hpp.
//
// While such a fiber runs, its carrier holds a processor like any other. When it waits, the carrier
// must run nothing else, so the processor goes to another one, the relief, which has stood by since
// the scope began:
//
//   1. The fiber's registers are saved, as at every switch. The loop of its carrier gives the
//      processor to the relief and stands by.
//   2. The relief finishes the switch: it runs the after-switch action, and then the fiber that was
//      chosen to run next.
//   3. The fiber becomes ready, is queued and is switched to like any other: wakers, queues and
//      policies know nothing of kept carriers. So it continues on some carrier, inside a processor,
//      still in leave_and_return(). It sees that this carrier is not its own, and switches to that
//      carrier's loop, which gives the processor to the kept carrier and stands by: it is the next
//      relief.
//   4. The loop of the kept carrier continues the fiber.
//
// So a wait makes no kernel thread and searches no list: the two carriers take turns. A kept
// carrier that holds a processor has a relief. One that has lost its processor to a block may have
// one still; rejoin() puts that back, and the fiber gets the next one in step 3. keep.cpp argues
// why no wake-up is lost.
//
// Bound: a scope has a permit (sched/block/permits.hpp), for the kernel thread that it needs beside
// those of the processors. A marked region inside takes none of its own: it uses the relief. A call
// that blocks unmarked, and a stop, borrow one as usual, and take a spare.
//
// Cost: nothing for other fibers. Each switch asks anyway whether exceptions are active, and a kept
// carrier points to a constant that always is (carrier::exceptions).
//
// Rejected: docs/design/keep-carrier.md.

#include "sched/fiber/after_switch.hpp"

namespace ums::sched {

struct carrier;
struct fiber;

struct keep {
    // departure::to() (sched/run/departure.hpp) for a fiber that keeps the carrier it runs on. The
    // caller is inside; returns outside, on that carrier.
    [[gnu::noinline]] static void switch_to(carrier& kept, fiber& self, fiber* next,
                                            after_switch* after) noexcept;

    // The fiber leaves the carrier for its loop, which runs `after`. That gives the processor away,
    // or calls wait_for_fiber(). Returns once both are together again, outside.
    [[gnu::noinline]] static void leave_and_return(carrier& kept, fiber& self,
                                                   after_switch* after) noexcept;

    // For such an action, if the carrier has no processor. Call it before the fiber is made ready.
    static void wait_for_fiber(carrier& kept) noexcept;

    // Takes the carrier's relief, to give it the processor. Null if there is none. The caller is
    // inside, holds a claim, or is the carrier's own thread while that has no processor.
    [[nodiscard]] static carrier* take_relief(carrier& of) noexcept;

    // The calling fiber ends inside a scope: leaves it.
    static void end(fiber& self) noexcept;

    // In the child of a fork(): the calling fiber is still inside its scopes, and gets a relief of
    // its own. May yield. Throws std::system_error if there is no kernel thread for it.
    static void begin_again(fiber& self);
};

}  // namespace ums::sched
