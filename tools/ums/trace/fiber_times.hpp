// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/trace/fiber_times.hpp: since when each fiber is in its state, and its time on
// processors, from the rings of a process that records.
//
// Each ring tells without a gap what its processor did from some moment on: from the oldest record
// that is left, or from when its processor began to record; if recording was on before the first
// fiber was made, from the start. Only from the last of these moments on
// is nothing missing, whatever processors a fiber was on. No state is dated by an older record,
// because a later one of that fiber may have been overwritten, or never written. The exception is a
// fiber that runs: the ring of its processor alone tells since when.

#include <cstdint>
#include <vector>

#include "../inspect/snapshot.hpp"
#include "record.hpp"

namespace tool::tracing {

// Whether each processor that is busy has begun to record.
[[nodiscard]] bool have_all_busy_begun(const inspect::snapshot& s, const recording& what);

// Sets since_ns and cpu_ns of the fibers. Returns for how long nothing has been missing, in ns.
// `looked_at` (CLOCK_MONOTONIC): when the fibers were looked at. Requires: the rings were read
// after that.
std::int64_t set_times(std::vector<inspect::fiber_record>& fibers, std::int64_t looked_at,
                       bool have_all_begun, recording what);

}  // namespace tool::tracing
