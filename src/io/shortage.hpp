// SPDX-License-Identifier: MIT
#pragma once

// io/shortage.hpp: what an accept() does when there are no descriptors left.
//
// It waits for the next close() of a descriptor by libums, or for a twentieth of a second, since others may close
// some, too. The connection stays in the kernel's queue meanwhile, and no CPU is used.
//
// The waiters stand in a list, under a lock. A close() takes one out and wakes it; one whose time is up takes
// itself out, or finds that it was taken, and waits for that wake-up.

#include "ums/limits.hpp"

namespace ums::io::shortage {

// 0: worth another try. -ETIMEDOUT, -ECANCELED.
long wait(const limits& l) noexcept;

// A descriptor was closed.
void end() noexcept;

}  // namespace ums::io::shortage
