// SPDX-License-Identifier: MIT
#pragma once

// For models, in place of sched/run/park.hpp: no marked region waits for a permit there.

#include "sched/fiber/parkable.hpp"

namespace ums::sched {

enum class park_kind { internal, user };

[[noreturn]] parkable& this_parkable() noexcept;
[[noreturn]] void park(park_kind kind) noexcept;

}  // namespace ums::sched
