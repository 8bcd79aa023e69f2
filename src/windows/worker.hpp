// SPDX-License-Identifier: MIT
#pragma once

// windows/worker.hpp: what a call does about a calling worker. Nothing on other threads.

namespace ums::windows {

inline void worker_will_block() noexcept {}
inline void worker_has_blocked() noexcept {}
inline void worker_critical_enter() noexcept {}
inline void worker_critical_leave() noexcept {}

}  // namespace ums::windows
