// SPDX-License-Identifier: MIT
#pragma once

// sched/depot.hpp: the process's one stack depot, with fibers' descriptors at the top of its stacks.

#include "mem/stack_depot.hpp"

namespace ums::sched {

mem::stack_depot& depot() noexcept;

}  // namespace ums::sched
