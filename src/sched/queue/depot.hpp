// SPDX-License-Identifier: MIT
#pragma once

// sched/queue/depot.hpp: the process's one stack depot, whose stacks have the fibers' descriptors
// at their tops.

#include "mem/stack_depot.hpp"

namespace ums::sched {

mem::stack_depot& depot() noexcept;

}  // namespace ums::sched
