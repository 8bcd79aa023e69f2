// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/trace/timeline.hpp: turns records into what each fiber did, and when.

#include <functional>
#include <unordered_map>

#include "../inspect/memory.hpp"
#include "record.hpp"
#include "sink.hpp"

namespace tool::tracing {

// What is known of a fiber besides its records.
struct fiber_words {
    std::string name;
    std::string start;  // The function that it was made with.
};
using known_fibers = std::unordered_map<std::uint64_t, fiber_words>;

struct totals {
    std::uint64_t records = 0, runs = 0, spawns = 0, ends = 0, parks = 0, unparks = 0, steals = 0,
                  hand_offs = 0, stops = 0, marks = 0, timers = 0, io = 0;
    std::int64_t begin = 0, end = 0;
};

// Tells `to` everything that the records from `from` (ns) on say. `start_of` names a function by
// its address.
totals tell(const recording& what, std::int64_t from, known_fibers known,
            const std::function<std::string(inspect::address)>& start_of, sink& to);

}  // namespace tool::tracing
