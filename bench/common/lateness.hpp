// SPDX-License-Identifier: MIT
#pragma once

// bench/common/lateness.hpp: how late each sleeper woke, and that none woke early.

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "line.hpp"

namespace bench {

// The same sequence in every runtime, so that all sleep the same times (splitmix64).
inline std::uint64_t sleep_ns(std::uint64_t index, std::uint64_t longest_ns) noexcept {
    std::uint64_t z = (index + 1) * 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return (z ^ (z >> 31U)) % (longest_ns + 1);
}

// Adds the figures for `late_ns` (woken minus deadline). Throws if a sleeper woke before its
// deadline.
inline void add_lateness(line& out, std::vector<std::int64_t>& late_ns) {
    std::sort(late_ns.begin(), late_ns.end());
    const auto early = std::lower_bound(late_ns.begin(), late_ns.end(), 0) - late_ns.begin();
    if (early != 0)
        throw std::runtime_error{std::to_string(early) + " of " + std::to_string(late_ns.size()) +
                                 " sleepers woke early, by up to " +
                                 std::to_string(-late_ns.front()) + " ns"};
    const auto at = [&](double share) {
        const auto last = static_cast<double>(late_ns.size() - 1);
        return static_cast<double>(late_ns[static_cast<std::size_t>(share * last)]) / 1000.0;
    };
    out.add("lateness_p50_us", at(0.50))
        .add("lateness_p99_us", at(0.99))
        .add("lateness_max_us", at(1.0));
}

}  // namespace bench
