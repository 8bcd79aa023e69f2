// SPDX-License-Identifier: MIT
#pragma once

// sync/mutex_state.hpp: what other parts of the library do with a mutex.

#include "sched/fiber/parkable.hpp"
#include "ums/mutex.hpp"

namespace ums::impl {

// Unlocks for `me`, the holder, if that wakes no waiter. False: it would, and nothing has happened.
[[nodiscard]] bool unlock_alone(mutex_state& m, sched::parkable& me) noexcept;

}  // namespace ums::impl
