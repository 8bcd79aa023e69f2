// SPDX-License-Identifier: MIT
#pragma once

// For models, in place of sched/wake.hpp: no marked region waits for a permit there.

#include "sched/parkable.hpp"

namespace ums::sched {

[[noreturn]] void wake(parkable& target) noexcept;

}  // namespace ums::sched
