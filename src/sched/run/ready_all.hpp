// SPDX-License-Identifier: MIT
#pragma once

// sched/run/ready_all.hpp: many fibers become ready at once, and one processor is woken for them.
//
// If they are of several clusters, it is one processor of each; that one wakes the next when it has
// found work of its own and there is more (sched/run/search.hpp). Cost: for fibers of the caller's
// own cluster, one push each; for those of another cluster, one compare-and-swap for all of them
// under the default policy, otherwise the policy's ready() for each.

namespace ums::sched {

struct fiber;

// The caller owns the fibers, which are linked in the order in which they are to run. May be called
// from anywhere.
void ready_all(fiber* list) noexcept;

}  // namespace ums::sched
