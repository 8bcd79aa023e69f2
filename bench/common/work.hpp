// SPDX-License-Identifier: MIT
#pragma once

// bench/common/work.hpp: computing for a given time without looking at a clock.
//
// A section that reads the clock until its time is over costs at least two readings, and a runner
// that lost its CPU meanwhile would be let off the rest. So the work is a number of steps, each of
// which needs the one before, counted out once per process.

#include <algorithm>
#include <cstdint>

#include "clock.hpp"

namespace bench {

// Give it what the caller's last call returned: the CPU would otherwise run two at the same time.
[[gnu::noinline]] inline std::uint64_t compute(std::uint64_t steps, std::uint64_t x) noexcept {
    for (std::uint64_t i = 0; i < steps; ++i) {
        x = x * 6364136223846793005U + 1442695040888963407U;
        asm volatile("" : "+r"(x));
    }
    return x;
}

// The steps that take `ns`. The fastest of many tries: whatever interrupts one only makes it
// longer.
inline std::uint64_t steps_of(std::uint64_t ns) {
    static const double steps_per_ns = [] {
        constexpr std::uint64_t steps = 20'000;
        std::uint64_t best = ~std::uint64_t{0};
        for (int i = 0; i < 200; ++i) {
            const auto begin = now_ns();
            compute(steps, begin);
            best = std::min(best, now_ns() - begin);
        }
        return static_cast<double>(steps) / static_cast<double>(best);
    }();
    return static_cast<std::uint64_t>(static_cast<double>(ns) * steps_per_ns + 0.5);
}

}  // namespace bench
