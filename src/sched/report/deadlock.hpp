// SPDX-License-Identifier: MIT
#pragma once

// sched/report/deadlock.hpp: the deadlock report at a standstill. The public face is
// ums/deadlock.hpp.

#include "ums/options.hpp"

namespace ums::sched {

// Requires: no carrier runs.
void watch_for_deadlocks(deadlock_check what) noexcept;

}  // namespace ums::sched
