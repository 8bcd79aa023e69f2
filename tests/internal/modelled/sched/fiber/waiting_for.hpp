// SPDX-License-Identifier: MIT
#pragma once

// For models, in place of sched/fiber/waiting_for.hpp: no reader looks inside.

#include "sched/fiber/parkable.hpp"

namespace ums::sched {

enum class wait_kind { permit };

struct waiting_for {
    waiting_for(parkable&, wait_kind, const void*) noexcept {}
};

}  // namespace ums::sched
