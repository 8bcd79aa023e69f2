// SPDX-License-Identifier: MIT
#pragma once

// arch/time_stamp.hpp: the CPU's own clock, for time stamps that are too frequent for
// clock_gettime(2).
//
// All CPUs have the same rate, whatever their frequency (constant_tsc, nonstop_tsc). Reading it is
// not ordered with the instructions around it.

#include <cstdint>

namespace ums::arch {

[[nodiscard]] inline std::uint64_t time_stamp() noexcept {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();  // As __rdtsc(), without 40,000 lines of other intrinsics.
#elif defined(__aarch64__)
    std::uint64_t now;
    asm volatile("mrs %0, cntvct_el0" : "=r"(now));
    return now;
#endif
}

}  // namespace ums::arch
