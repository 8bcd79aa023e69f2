// SPDX-License-Identifier: MIT
#pragma once

// io/wait/shortage.hpp: what an accept() does when there are no descriptors left.
//
// It waits for the next close() of a descriptor by libums, or for a twentieth of a second, since
// other code may close some, too. Meanwhile the connection stays in the kernel's queue, and no CPU
// is used.
//
// The waiters stand in a list, under a lock. A close() takes one out and wakes it. A waiter whose
// time is up takes itself out, or finds that a close() took it, and waits for that wake-up.

#include "ums/limits.hpp"

namespace ums::io::shortage {

// Returns 0 (worth another try), -ETIMEDOUT or -ECANCELED.
long wait(const limits& l) noexcept;

// Call when a descriptor was closed.
void end() noexcept;

// In the child of a fork(): nobody waits.
void leave_behind() noexcept;

}  // namespace ums::io::shortage
