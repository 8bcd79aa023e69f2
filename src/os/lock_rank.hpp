// SPDX-License-Identifier: MIT
#pragma once

// os/lock_rank.hpp: the order in which the runtime's locks are taken: see os/lock.hpp.

namespace ums::os {

enum class lock_rank : unsigned char { change, depot, timers, idle, policy, carriers, leaf };

}  // namespace ums::os
