// SPDX-License-Identifier: MIT
#pragma once

// ums/metrics.hpp: what the runtime does, for a monitoring system, and which fibers there are.
//
// metrics() returns text in the OpenMetrics format, which Prometheus and similar systems read.
// Serve it as metrics_type. docs/look-inside.md lists the names.
//
// Counters and the latency of hand-offs are always measured, from the start of the runtime. How
// long fibers wait in the run queue, from a wake-up until they run, and for mutexes needs a time
// stamp for each switch, so it is measured only while a trace is recorded (UMS_TRACE=on, or
// `ums trace --on PID`). Otherwise these histograms stay as they are; they count from the start of
// the process. Each call of metrics() adds what was recorded since the last one, at most about
// 65,536 records; ums_trace_missed_total counts the others. So under load the times are a sample.
//
// Blocking:  metrics() parks while another call of it is at work. fibers() never parks.
// Ordering:  none: the values are of slightly different moments. fibers() shows each fiber as it
//            was at one moment, except for what it waits for, which may be over.
// Lifetime:  the runtime must not be started or stopped meanwhile.
// Errors:    std::bad_alloc. Without a runtime counters are zero, and there are no fibers.
// Cost:      metrics() writes some 200 lines: tens of microseconds. Where a trace is recorded it
//            also reads and sorts records, which is a few milliseconds for 65,536 of them.
//            fibers() reads each descriptor, which is a cache miss or two for each fiber alive,
//            and allocates.

#include <cstdint>
#include <string>
#include <vector>

#include "ums/export.hpp"
#include "ums/fiber_ref.hpp"

namespace ums {

// The Content-Type of metrics().
inline constexpr const char* metrics_type =
    "application/openmetrics-text; version=1.0.0; charset=utf-8";

// Returns all metrics, with "# EOF" as the last line.
[[nodiscard]] UMS_EXPORT std::string metrics();

enum class fiber_state : std::uint8_t {
    active,   // Runs, is ready, is blocked in the kernel, or was stopped.
    waiting,  // Waits, or was woken and has not run since.
    ended,    // Has ended and was not joined yet.
};

struct fiber_info {
    fiber_id id;
    fiber_state state = fiber_state::active;
    std::string name;                  // As given, cut to 256 bytes; often empty.
    fiber_id made_by;                  // The fiber that spawned it; none: a plain thread did.
    const void* spawned_at = nullptr;  // Where the code that spawned it continues.
    // What it waits for, in the words of `ums ps --waits`; "" unless it waits.
    const char* waits_for = "";
    // The address of that object, the number of the descriptor, the id of the fiber that is joined,
    // the count of cases of a select; 0 where there is none.
    std::uint64_t waits_in = 0;
};

// Returns the fibers of all clusters, in no order, while they run on: one that begins or ends
// meanwhile may be missing. No fiber is there twice.
[[nodiscard]] UMS_EXPORT std::vector<fiber_info> fibers();

}  // namespace ums
