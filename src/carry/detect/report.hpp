// SPDX-License-Identifier: MIT
#pragma once

// carry/detect/report.hpp: the one place that decides whether a thread has blocked.

#include "carry/load.hpp"
#include "os/thread/thread_state.hpp"

namespace ums::carry {

// Looks at the thread, and reports it to the load if that is of interest and blocked. `when` is
// since when, or 0 if that is not known. `if_unknown` says what to assume if /proc does not say.
// `free_cpu`: see notice. Returns whether it was reported, and was still blocked.
//
// There is no false notice: the thread was of interest and had the same activity before and after
// it was seen blocked, and an activity never comes back. So it was blocked while it was of
// interest.
bool report_if_blocked(load& w, os::thread_states& states, os::nanoseconds when, bool if_unknown,
                       int free_cpu = -1) noexcept;

}  // namespace ums::carry
