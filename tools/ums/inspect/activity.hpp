// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/inspect/activity.hpp: what a process did between two snapshots: rates, shares, and for
// how long fibers have not moved. `ums top` shows these numbers.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "occupancy.hpp"
#include "snapshot.hpp"
#include "words.hpp"

namespace tool::inspect {

struct processor_activity {
    std::string cluster;
    std::uint32_t index = 0;
    double busy = 0;  // From 0 to 1: the share of the time in which a fiber was on the processor.
    double switches = 0, steals = 0, timers_fired = 0;  // Per second.
    std::uint32_t queued = 0;
    std::uint64_t timers = 0;
};

struct cluster_activity {
    std::string name;
    std::uint32_t processors = 0, carriers = 0, queued = 0;
    double busy = 0;  // In processors.
    // Per second:
    double switches = 0, spawned = 0, finished = 0, hand_offs = 0, stops = 0, preemptions = 0;
};

// The fibers that were made with the same function.
struct start_activity {
    start made_with;
    std::vector<std::uint32_t> fibers;  // Indices in the snapshot's fibers.
    name_counts names;                  // "mutex-*" for those that differ by the number at the end.
    name_counts states, waits;
    double share = 0;  // Share of one processor's time. Includes fibers that have ended.
    std::uint64_t stack_most = 0;
};

struct fiber_activity {
    std::uint32_t fiber = 0;  // Index in the snapshot's fibers.
    address start = 0;        // The function it was made with: a key of start_names.
    double share = 0;         // Share of one processor's time.
    double unmoved_s = 0;     // For this long it stood at the same place at every look.
};

struct activity {
    std::unique_ptr<snapshot> now;
    // The time between the two snapshots; 0: this is the first, so there are no rates.
    double seconds = 0;
    double look_seconds = 0;  // How long taking the snapshot took.
    std::uint64_t looks = 0;  // How often the processors were looked at.
    std::vector<processor_activity> processors;
    std::vector<cluster_activity> clusters;
    std::vector<start_activity> starts;
    std::vector<fiber_activity> fibers;
    // How late hand-offs were: half of those since the last snapshot took at most this many us. 0:
    // none.
    std::uint64_t hand_off_us = 0;
};

class activity_watch {
public:
    activity_watch(const process& of, const layout& how, start_names& names)
        : of_{of}, how_{how}, names_{names}, occupied_{of, how, names} {}

    // Call it between snapshots, as often as you like: each call samples what runs.
    void look() { occupied_.look(); }
    // Returns what happened since the last call.
    [[nodiscard]] activity next();

private:
    // Where a fiber that does not run stands. One that ran in between and came back to the same
    // wait looks the same.
    struct place {
        address sp = 0, ip = 0;
        std::uint64_t mark = 0;
        std::int64_t since = 0;
        std::uint64_t turn = 0;  // The turn of next() in which it was last seen.
    };

    void add_processors(activity& a) const;
    void add_clusters(activity& a) const;
    void add_fibers(activity& a);
    void remember(const snapshot& s);

    const process& of_;
    const layout& how_;
    start_names& names_;
    occupancy occupied_;
    std::unordered_map<std::uint64_t, place> places_;  // By id.
    std::map<address, processor_record> processors_before_;
    std::map<address, cluster_record> clusters_before_;
    std::vector<std::uint64_t> notices_before_;
    std::int64_t before_ = 0;
    std::uint64_t turn_ = 0;
};

}  // namespace tool::inspect
