// SPDX-License-Identifier: MIT
#pragma once

// sched/life/plain_join.hpp: the plain threads that are in join().
//
// When a runtime stops, it waits for the ends of its fibers. A thread that has waited for such an
// end in join() may wake up later, and only then gives the fiber's stack back; so a stop waits for
// these threads, too. A thread comes before it writes the joiner word, so before the fiber's end.
// fork_join() and parallel_for() hold the runtime as their fibers do (fork_part()).

#include "os/visitors.hpp"

namespace ums::sched {

inline constinit os::visitors plain_joins;

}  // namespace ums::sched
