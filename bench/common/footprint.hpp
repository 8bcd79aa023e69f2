// SPDX-License-Identifier: MIT
#pragma once

// bench/common/footprint.hpp: what N blocked runners occupy, and how long it took to create them.
//
// The clock and the memory figures start before the first is created and end when the last has
// blocked. The peer allocates and touches its own arrays before that, so that only the runtime's
// memory is counted.

#include <cstdint>

#include "clock.hpp"
#include "line.hpp"
#include "process.hpp"

namespace bench {

class footprint {
public:
    footprint() : rss_{status_bytes("VmRSS")}, pte_{status_bytes("VmPTE")}, begin_ns_{now_ns()} {}

    void add_to(line& out, std::uint64_t runners) const {
        const auto ns = now_ns() - begin_ns_;
        const auto each = [&](std::uint64_t now, std::uint64_t before) {
            return (static_cast<double>(now) - static_cast<double>(before)) /
                   static_cast<double>(runners);
        };
        out.add("ops", runners).add("ns", ns);
        out.add("bytes_per_fiber", each(status_bytes("VmRSS"), rss_));
        out.add("pte_bytes_per_fiber", each(status_bytes("VmPTE"), pte_));
        out.add("maps_lines", maps_lines());
    }

private:
    std::uint64_t rss_;
    std::uint64_t pte_;
    std::uint64_t begin_ns_;
};

}  // namespace bench
