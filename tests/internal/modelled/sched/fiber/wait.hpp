// SPDX-License-Identifier: MIT
#pragma once

// For models, in place of sched/fiber/wait.hpp: no reader looks inside.

#include "sched/fiber/parkable.hpp"

namespace ums::sched {

enum class wait_kind { permit };

struct wait {
    wait(parkable&, wait_kind, const void*) noexcept {}
};

}  // namespace ums::sched
