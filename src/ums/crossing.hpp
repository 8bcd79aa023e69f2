// SPDX-License-Identifier: MIT
#pragma once

// ums/crossing.hpp: how a worker leaves its scheduler and comes back. All are called by the worker itself.

#include "ums/context.hpp"

namespace ums::scheduling {

// Until the next execution. Requires: no critical region, not at home.
void yield(context& self, void* argument) noexcept;

// Gives the scheduler its kernel thread back (UMS_REASON_BLOCKED, 1) and goes on at home.
void go_home(context& self) noexcept;

// Queues the worker, unless it is suspended, and waits to be executed. Requires: at home. Does not return if the
// worker was terminated meanwhile.
void come_back(context& self) noexcept;

// The same, and it stays inside (ums/seat.hpp).
void come_back_inside(context& self) noexcept;

// Ends the worker at home: its frames are discarded. Requires: at home.
[[noreturn]] void end_here(context& self) noexcept;

}  // namespace ums::scheduling
