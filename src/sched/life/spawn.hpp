// SPDX-License-Identifier: MIT
#pragma once

// sched/life/spawn.hpp: how a fiber begins. The public face is ums/impl/spawn.hpp.

#include "base/atomic.hpp"

namespace ums::sched {

class cluster;

// The cluster for a fiber that is made without naming one, by a thread that has none. Null if no
// runtime runs.
extern base::atomic<cluster*> default_cluster;

}  // namespace ums::sched
