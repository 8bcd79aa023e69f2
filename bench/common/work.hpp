// SPDX-License-Identifier: MIT
#pragma once

// bench/common/work.hpp: computing for a given time without looking at a clock.
//
// A section that reads the clock until its time is over costs at least two readings, and a runner
// that lost its CPU meanwhile would be spared the rest. So the work is a number of steps, each of
// which needs the one before, measured once per process.

#include <algorithm>
#include <cstdint>

#include "clock.hpp"

namespace bench {

// Pass the result of the caller's last call; otherwise the CPU would run two calls at the same
// time.
[[gnu::noinline]] inline std::uint64_t compute(std::uint64_t steps, std::uint64_t x) noexcept {
    for (std::uint64_t i = 0; i < steps; ++i) {
        x = x * 6364136223846793005U + 1442695040888963407U;
        asm volatile("" : "+r"(x));
    }
    return x;
}

// The number of steps that take `ns`. Takes the fastest of many tries, because an interruption only
// makes a try longer.
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
