// SPDX-License-Identifier: MIT
#pragma once

// windows/worker.hpp: what a call does about a calling worker. These do nothing on other threads.

#include "ums/ums_scheduling.h"

namespace ums::windows {

inline void worker_will_block() noexcept { ums_worker_blocking_enter(); }
inline void worker_has_blocked() noexcept { ums_worker_blocking_leave(); }
inline void worker_critical_enter() noexcept { ums_critical_enter(); }
inline void worker_critical_leave() noexcept { ums_critical_leave(); }

}  // namespace ums::windows
