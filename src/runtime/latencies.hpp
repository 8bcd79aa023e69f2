// SPDX-License-Identifier: MIT
#pragma once

// runtime/latencies.hpp: how long fibers wait, added up from the records of a trace
// (sched/record/trace.hpp).
//
// follow() reads what was recorded since the last time, and adds nothing to the cost of a record.
//
// It reads one ring after another. Meanwhile a fiber may be woken on a ring that was read already,
// and run and end on one that was not. So records that are newer than the beginning of follow() are
// kept for the next time. Of the others none is missing, because a record is in its ring before
// what it says takes effect.
//
// It misses what the rings have overwritten by then, and what is more than it reads at once. Waits
// whose begin or end is missing must not be guessed, so it then forgets all waits that were under
// way, and what other rings hold of the time before. So the times are a sample, and each of them is
// right.
//
// Rejected: a time stamp in each descriptor, and histograms in each processor. That is one more
// store and increment for each event, also for users that want only the trace.

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "arch/time_stamp.hpp"
#include "runtime/openmetrics.hpp"
#include "sched/record/trace.hpp"

namespace ums::rt {

// Not thread-safe.
class latencies {
public:
    using times = histogram<28>;  // From 128 ns to 8.6 s.

    // May throw std::bad_alloc; then some records are missed.
    void follow() { follow(arch::time_stamp()); }
    // `until`: of now, or earlier.
    void follow(std::uint64_t until);
    // The number of fibers that are remembered: those that were seen and have not ended.
    [[nodiscard]] std::size_t remembered() const noexcept { return fibers_.size(); }

    times in_queue{128};  // From ready to running.
    // The same, for fibers that a wake-up, a deadline, an event or a spawn made ready.
    times woken_to_run{128};
    times for_locks{128};       // From the park for a mutex to running.
    std::uint64_t records = 0;  // Records that were read,
    std::uint64_t missed = 0;   // and records that were not, or were of no use.

private:
    struct place {
        std::uint64_t next = 0;      // The record to be read next.
        std::uint64_t begun_at = 0;  // The value of trace_ring::begun_at at that moment.
        std::uint64_t running = 0;   // The fiber that runs there; 0: none, or it is not known.
        bool is_new = true;
    };
    struct event {
        std::uint64_t when, what, argument, other;
        place* at;
    };
    struct state {
        std::uint64_t ready = 0, parked = 0;  // Since when the fiber is; 0: it is not.
        bool was_woken = false, is_for_lock = false;
    };

    bool read_all();
    bool read(const sched::trace_ring& r, place& at, std::uint64_t most);
    void copy(const sched::trace_ring& r, place& at, std::uint64_t first, std::uint64_t count);
    void forget();
    void add(const event& e);
    void leaves(const event& e, std::uint64_t id, const state& now);
    void runs(place& at, std::uint64_t id, std::uint64_t when);

    std::unordered_map<const sched::trace_ring*, place> places_;  // Rings are never unmapped.
    std::unordered_map<std::uint64_t, state> fibers_;
    std::vector<event> new_;        // Those that were read and not added yet.
    std::uint64_t known_from_ = 0;  // Before this moment not everything is known.
    bool is_whole_ = true;          // Otherwise an exception ended the last follow().
    double ns_per_stamp_ = 0;
};

}  // namespace ums::rt
