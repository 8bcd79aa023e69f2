// SPDX-License-Identifier: MIT
#include "ums/stats.hpp"

#include "base/sized.hpp"
#include "capi/call.hpp"

using namespace ums;
using namespace ums::capi;

int ums_stats_get(ums_stats_t* out) {
    const runtime_stats s = stats();
    const ums_stats_t known{.size = sizeof known,
                            .spawned = s.spawned,
                            .finished = s.finished,
                            .steals = s.steals,
                            .stolen = s.stolen,
                            .idle_waits = s.idle_waits,
                            .wakes = s.wakes,
                            .slabs = s.slabs,
                            .stacks_made = s.stacks_made,
                            .stacks_warm = s.stacks_warm,
                            .stacks_cold = s.stacks_cold,
                            .stacks_trimmed = s.stacks_trimmed,
                            .mapped_bytes = s.mapped_bytes,
                            .stack_high_water_bytes = s.stack_high_water_bytes,
                            .carriers = s.carriers,
                            .carriers_peak = s.carriers_peak,
                            .carriers_spare = s.carriers_spare,
                            .hand_offs = s.hand_offs,
                            .blocked_in_calls = s.blocked_in_calls,
                            .blocked_in_faults = s.blocked_in_faults,
                            .blocked_in_regions = s.blocked_in_regions,
                            .stops = s.stops,
                            .preemptions = s.preemptions,
                            .carrier_waits = s.carrier_waits,
                            .carrier_refusals = s.carrier_refusals};
    return base::give_sized(*out, known, sizeof known.size);
}

void ums_trim() { trim(); }

int ums_info(char* buffer, size_t bytes, size_t* length) {
    return call([&] {
        const std::size_t n = copy_text(info(), buffer, bytes);
        if (length != nullptr) *length = n;
    });
}

const char* ums_version() { return version(); }
