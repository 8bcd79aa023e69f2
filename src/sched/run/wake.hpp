// SPDX-License-Identifier: MIT
#pragma once

// sched/run/wake.hpp: making a parked fiber or thread continue.
//
// wake() is for waits inside the library, unpark() for the public park. Both are remembered if they
// come early. They never block and may be called from any thread, but not from a signal handler.
// Cost: one read-modify-write, and for a fiber one push into a queue; a system call if an idle
// processor or a plain thread must be woken.

#include "arch/sanitizer.hpp"
#include "sched/fiber/parkable.hpp"

namespace ums::sched {

struct fiber;

void wake(parkable& target) noexcept;
void unpark(parkable& target) noexcept;

// Like unpark(), but a parked fiber is only claimed, as by claim_for_wake().
[[nodiscard]] fiber* claim_for_unpark(parkable& target) noexcept;

// Like wake(), but a parked fiber is only claimed: the caller owns it and must make it ready. Null:
// nothing is left to do.
[[nodiscard]] fiber* claim_for_wake(parkable& target) noexcept;

// Takes a parked waiter, of either kind, for a deadline or a stop; if the waiter has not completed
// its park yet, leaves a mark for it. Returns whether the caller now owns it and must make it
// ready.
bool claim_for(parkable& target, parkable::reason why) noexcept;

// Puts a claimed fiber into a queue, or lets a claimed thread run.
void resume(parkable& target) noexcept;

// Puts claimed fibers, linked, behind what is ready already, as an event does.
void resume_all(fiber* list) noexcept;

// Ends a park_holding(). The caller has taken the waiter out of its publication, under that lock,
// which the caller may have released since.
void resume_held(parkable& target) noexcept;

[[nodiscard]] bool end_noted_hold(parkable& target) noexcept;

// What resume_held() begins with. Returns whether the caller is to make the fiber ready; otherwise
// unused_pages holds it still, and will. The light side of the argument in
// sched/run/unused_pages.cpp.
[[nodiscard]] UMS_ALWAYS_INLINE bool end_hold(parkable& target) noexcept {
    target.is_held.set(false);
    base::compiler_fence();
    // relaxed: the bits only say which side makes the fiber ready.
    if ((target.word.load(base::relaxed) & parkable::of_a_held_park) == 0) [[likely]]
        return true;
    return end_noted_hold(target);
}

}  // namespace ums::sched
