// SPDX-License-Identifier: MIT
#include "ums/stats.hpp"

#include <csignal>
#include <string>

#include "carry/detect/detector.hpp"
#include "io/engine/engine.hpp"
#include "os/cpu/membarrier.hpp"
#include "os/signal/interrupt_signal.hpp"
#include "runtime/runtime.hpp"
#include "runtime/version.hpp"
#include "sched/block/detection.hpp"
#include "sched/life/end.hpp"
#include "sched/policies/built_in.hpp"
#include "sched/queue/depot.hpp"
#include "ums/io.hpp"

namespace ums {

runtime_stats stats() noexcept {
    runtime_stats s{};
    const rt::running_runtime* r = rt::current();
    if (r == nullptr) return s;
    const sched::cluster& c = *r->standard;
    s.finished = c.finished();
    s.spawned = c.spawned();
    for (unsigned i = 0; i < c.size(); ++i) {
        const sched::processor_counters& n = c.at(i).counters;
        s.steals += n.steals.get();
        s.stolen += n.stolen.get();
        s.idle_waits += n.idles.get();
        s.wakes += n.wakes_sent.get();
    }
    const sched::carrier_counters n = r->standard->carriers.counters();
    s.carriers = n.now;
    s.carriers_peak = n.peak;
    s.carriers_spare = n.spare;
    s.carriers_made = n.made;
    s.hand_offs = n.hand_offs;
    s.stops = n.stops;
    s.preemptions = n.preemptions;
    s.carrier_waits = n.waits;
    s.carrier_refusals = n.refused;
    sched::detection::add_to(s);
    const mem::depot_stats d = sched::depot().stats();
    s.slabs = d.slabs;
    s.stacks_made = d.carved;
    s.stacks_warm = d.warm;
    s.stacks_cold = d.cold;
    s.stacks_trimmed = d.trimmed;
    s.mapped_bytes = d.mapped_bytes;
    s.stack_high_water_bytes = sched::stack_high_water.load(base::relaxed);
    return s;
}

void trim() noexcept { sched::depot().trim(); }

const char* version() noexcept { return rt::version_text; }

namespace {

// The line about the signal that stops fibers.
std::string signal_line(const rt::running_runtime* r, const options& o, bool detects) {
    if (const char* why = rt::why_no_stops())
        return std::string{"none: fibers are not stopped under "} + why;
    if (!detects) return "none: fibers are not stopped without a detector of blocking";
    const int used = r != nullptr    ? r->watch->signal()
                     : o.signal != 0 ? o.signal
                                     : os::interrupt_signal::unused();
    if (used == 0) return "none is left: fibers are not stopped";
    return std::to_string(used) +
           (o.signal != 0       ? " (asked for)"
            : used == SIGSTKFLT ? " (the real-time signals are blocked)"
                                : " (the highest that nobody uses)") +
           (r != nullptr && !r->watch->can_stop() ? ", taken over by the application" : "");
}

std::string policy_line(policy_kind kind) {
    const auto& found = sched::built_in_policies()[static_cast<std::size_t>(kind)];
    return std::string{found.name} + ": " + found.what;
}

// Whether the runtime finds blocks, or would, and why.
struct verdict {
    bool detects;
    std::string reason;
};
verdict find_detection(const rt::running_runtime* r, const options& o) {
    if (r != nullptr) return {r->watch->detects(), r->watch->reason()};
    carry::chosen_detector tried = carry::choose(o.block);
    return {tried.is != nullptr, std::move(tried.reason)};
}

std::string detection_line(const options& o, const verdict& found) {
    const bool is_refused = !found.detects && o.block == block_detection::monitor;
    return (is_refused      ? "refused: monitor ("
            : found.detects ? "monitor ("
                            : "off (") +
           found.reason + ")";
}

// The line about how long a fiber may run while others wait.
std::string slice_line(const options& o, const verdict& found) {
    if (o.time_slice_us == 0) return "none: fibers are not preempted";
    if (const char* why = rt::why_no_stops())
        return std::string{"none: fibers are not stopped under "} + why;
    if (const std::string why = rt::why_no_slices(found.detects, found.reason); !why.empty()) {
        if (o.time_slice_us != default_time_slice_us) return "refused: " + why;
        if (!found.detects) return "none: " + why;
        return "late: after some " + std::to_string(o.time_slice_us / 250) +
               " ms a fiber runs on beside those that wait: " + why;
    }
    return std::to_string(o.time_slice_us) + " us, while others wait";
}

}  // namespace

std::string info() {
    const rt::running_runtime* r = rt::current();
    const rt::settings set = r != nullptr ? r->set : rt::settle({});
    const options& o = set.chosen;
    // Registering is harmless, and is the only way to find out.
    const bool fence = r != nullptr ? os::asymmetric() : os::enable_asymmetric_fence(o.membarrier);
    std::string text;
    auto line = [&text](const char* what, const std::string& value) {
        text += std::string{what} + ": " + value + "\n";
    };
    line("version", version());
    line("processors", std::to_string(o.processors) + " (" + set.processors_reason + ")" +
                           (o.pin ? ", pinned" : ""));
    line("policy", o.make_policy ? "the application's own" : policy_line(o.policy));
    line("stack", std::to_string(o.stack_bytes) + " bytes, guard " +
                      std::to_string(mem::stack_depot::guard_bytes) + " bytes");
    line("guard", std::string{mem::name_of(set.guard)} + " (" + set.guard_reason + ")");
    line("fence", fence          ? "membarrier (private expedited)"
                  : o.membarrier ? "full fences (the kernel refuses membarrier)"
                                 : "full fences (asked for)");
    const verdict found = find_detection(r, o);
    line("blocking", detection_line(o, found));
    line("signal", signal_line(r, o, found.detects));
    line("time slice", slice_line(o, found));
    line("deadlocks", o.deadlock == deadlock_check::off      ? "found on demand only"
                      : o.deadlock == deadlock_check::report ? "reported when nothing can run"
                      : o.deadlock == deadlock_check::abort  ? "abort when nothing can run"
                                                             : "exit when nothing can run");
    line("switch", "x86-64 assembly, control words kept");
    return text;
}

}  // namespace ums
