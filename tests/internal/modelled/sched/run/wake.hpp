// SPDX-License-Identifier: MIT
#pragma once

// For models, in place of sched/run/wake.hpp: no marked region waits for a permit there.

#include "sched/fiber/parkable.hpp"

namespace ums::sched {

[[noreturn]] void wake(parkable& target) noexcept;

}  // namespace ums::sched
