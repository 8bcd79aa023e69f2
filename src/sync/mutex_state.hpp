// SPDX-License-Identifier: MIT
#pragma once

// sync/mutex_state.hpp: what others of the library do with a mutex.

#include "sched/parkable.hpp"
#include "ums/mutex.hpp"

namespace ums::impl {

// An unlock() by `me`, who holds it, if nobody has to be woken for it. False: nothing has happened.
[[nodiscard]] bool unlock_alone(mutex_state& m, sched::parkable& me) noexcept;

}  // namespace ums::impl
