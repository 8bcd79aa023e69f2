// SPDX-License-Identifier: MIT
#pragma once

// bench/common/clock.hpp: wall time, CPU time and the time-stamp counter.

#include <ctime>

#include <cstdint>

namespace bench {

inline std::uint64_t read_ns(clockid_t clock) noexcept {
    timespec t{};
    clock_gettime(clock, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000U +
           static_cast<std::uint64_t>(t.tv_nsec);
}

inline std::uint64_t now_ns() noexcept { return read_ns(CLOCK_MONOTONIC); }
inline std::uint64_t cpu_ns() noexcept { return read_ns(CLOCK_PROCESS_CPUTIME_ID); }

// Not serialised, as in the published programs: the cost of a pair of readings is measured and
// subtracted.
inline std::uint64_t cycles() noexcept { return __builtin_ia32_rdtsc(); }

// Operations done and the time they took, summed over rounds.
struct tally {
    std::uint64_t ops = 0;
    std::uint64_t ns = 0;
};

// Repeats `round` (which returns a tally) until `min_ms` were measured. A small cell is over in
// microseconds; one such sample says more about the moment than about the runtime.
template <class Round>
tally repeat(std::uint64_t min_ms, Round round) {
    tally sum;
    do {
        const tally one = round();
        sum.ops += one.ops;
        sum.ns += one.ns;
    } while (sum.ns < min_ms * 1'000'000U);
    return sum;
}

}  // namespace bench
