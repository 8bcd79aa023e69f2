// SPDX-License-Identifier: MIT
#pragma once

// sched/ready_all.hpp: many fibers become ready at once, and one processor is woken for them.
//
// Of several clusters, one processor of each; it wakes the next when it has found its own work and
// there is more (sched/search.hpp). Cost: for fibers of the caller's own cluster a push each; for
// those of another one, a compare-and-swap for all of them by the default policy, else the policy's
// ready() for each.

namespace ums::sched {

struct fiber;

// The caller owns them; linked, in the order in which they shall run. From anywhere.
void ready_all(fiber* list) noexcept;

}  // namespace ums::sched
