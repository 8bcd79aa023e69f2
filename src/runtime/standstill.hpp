// SPDX-License-Identifier: MIT
#pragma once

// runtime/standstill.hpp: says so when nothing can run any more: every fiber waits for another one,
// and no deadline, descriptor, blocked call or other kernel thread is there to wake one. Also says
// which fibers of a cluster with nothing to run wait for each other's mutexes in a circle.

#include "ums/options.hpp"

namespace ums::rt {

// Requires: no carrier runs.
void watch_for_standstill(deadlock_check what) noexcept;

}  // namespace ums::rt
