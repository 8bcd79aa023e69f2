// SPDX-License-Identifier: MIT
#include "ums/metrics.hpp"

#include <algorithm>
#include <mutex>

#include "runtime/latencies.hpp"
#include "runtime/openmetrics.hpp"
#include "runtime/runtime.hpp"
#include "runtime/version.hpp"
#include "sched/block/detection.hpp"
#include "sched/run/cluster.hpp"
#include "ums/mutex.hpp"
#include "ums/stats.hpp"

namespace ums {

namespace {

void add_fibers(rt::openmetrics& to, const runtime_stats& s) {
    to.counter("ums_fibers_spawned", "Fibers made in the default cluster, or moved there.",
               s.spawned);
    to.counter("ums_fibers_finished",
               "Fibers of the default cluster that have ended or moved away.", s.finished);
    to.gauge("ums_fibers", "Fibers of the default cluster that are alive.",
             s.spawned > s.finished ? s.spawned - s.finished : 0);
}

void add_processors(rt::openmetrics& to, const runtime_stats& s) {
    to.counter("ums_steals", "Successful raids of one processor on another.", s.steals);
    to.counter("ums_fibers_stolen", "Fibers that these raids brought.", s.stolen);
    to.counter("ums_idle_waits", "Waits of a processor that had nothing to run.", s.idle_waits);
    to.counter("ums_wakes", "Idle processors that others woke.", s.wakes);
    const rt::running_runtime* const r = rt::current();
    if (r == nullptr) return;
    to.counter_head("ums_switches", "Switches to a fiber, in the rounds that are over.");
    for (unsigned i = 0; i < r->standard->size(); ++i)
        to.counter_sample("ums_switches", "processor", std::to_string(i).c_str(),
                          r->standard->at(i).ready.past_switches());
}

void add_carriers(rt::openmetrics& to, const runtime_stats& s) {
    to.gauge("ums_carriers", "Kernel threads that can run fibers.", s.carriers);
    to.gauge("ums_carriers_spare", "Those of them that wait for use.", s.carriers_spare);
    to.counter("ums_carriers_made", "Kernel threads that were made.", s.carriers_made);
    to.counter("ums_carrier_waits", "Marked regions that waited for a kernel thread.",
               s.carrier_waits);
    to.counter("ums_carrier_refusals", "Blocked calls that kept their processor.",
               s.carrier_refusals);
    to.counter("ums_hand_offs", "Processors handed off because a fiber was blocked in the kernel.",
               s.hand_offs);
    to.counter_head("ums_blocks", "Blocks in the kernel that were found, by their cause.");
    to.counter_sample("ums_blocks", "cause", "call", s.blocked_in_calls);
    to.counter_sample("ums_blocks", "cause", "fault", s.blocked_in_faults);
    to.counter_sample("ums_blocks", "cause", "region", s.blocked_in_regions);
    to.counter("ums_stops", "Fibers stopped because they ran on without a processor.", s.stops);
    to.counter("ums_preemptions", "Fibers stopped because their time slice was over.",
               s.preemptions);
}

void add_memory(rt::openmetrics& to, const runtime_stats& s) {
    to.gauge("ums_stacks", "Stacks that were made.", s.stacks_made);
    to.gauge("ums_stacks_warm", "Free stacks of the depot that keep their memory.", s.stacks_warm);
    to.gauge("ums_stacks_cold", "Free stacks of the depot without memory.", s.stacks_cold);
    to.gauge("ums_mapped_bytes", "Address space of all stacks.", s.mapped_bytes, "bytes");
}

void add_hand_offs(rt::openmetrics& to, const runtime_stats& s) {
    rt::histogram<runtime_stats::notice_buckets> h{.shortest = 1000};
    std::copy(std::begin(s.notice_us), std::end(s.notice_us), h.count.begin());
    h.sum = sched::detection::notice_ns.load(base::relaxed);  // relaxed: statistics.
    to.times("ums_hand_off_latency_seconds",
             "From a block in the kernel until its processor moved on.", h);
}

// These count for the process, not for one runtime.
void add_recorded(rt::openmetrics& to) {
    static constinit mutex lock;
    // Not destroyed, so that it also serves the last moments of the process.
    static rt::latencies& all = *new rt::latencies;
    const std::lock_guard guard{lock};
    all.follow();
    to.gauge("ums_recording", "1: a trace is recorded, and what follows is measured.",
             sched::is_trace_wanted() ? 1 : 0);
    to.counter("ums_trace_records", "Records of the trace that what follows is made of.",
               all.records);
    to.counter("ums_trace_missed", "Records that were overwritten, or left out.", all.missed);
    to.times("ums_run_queue_latency_seconds", "From ready to running, while a trace is recorded.",
             all.in_queue);
    to.times("ums_wake_to_run_seconds",
             "From a wake-up, deadline, event or spawn to running, while a trace is recorded.",
             all.woken_to_run);
    to.times("ums_lock_wait_seconds",
             "Waits for a mutex that had to park, while a trace is recorded.", all.for_locks);
}

}  // namespace

std::string metrics() {
    const runtime_stats s = stats();
    rt::openmetrics to;
    to.info("ums_build", "The version of libums.", "version", rt::version_text);
    add_fibers(to, s);
    add_processors(to, s);
    add_carriers(to, s);
    add_memory(to, s);
    add_hand_offs(to, s);
    add_recorded(to);
    return std::move(to).end();
}

}  // namespace ums
