// SPDX-License-Identifier: MIT
#pragma once

// sched/report/backtrace.hpp: the stack of a parked fiber, as return addresses.
//
// The fiber is taken aside for that time, as a waker would take it, so it is not resumed meanwhile;
// a wake-up that comes is delivered afterwards. A fiber that waits in join() parks elsewhere
// (sched/life/join.cpp) and is not read.

#include <vector>

namespace ums::sched {

struct fiber;

// Innermost first; empty if the fiber is not parked. Requires: the fiber does not end meanwhile.
std::vector<const void*> backtrace(fiber& f);

}  // namespace ums::sched
