// SPDX-License-Identifier: MIT
#pragma once

// For models, in place of sched/record/trace.hpp: nothing is recorded.

#include <cstdint>

namespace ums::sched {

enum class trace_event : unsigned char { hand_off, back, stop };

struct trace_ring {
    void write(trace_event, std::uint64_t, std::uint64_t = 0, std::uint64_t = 0) noexcept {}
};

inline void trace_outside(trace_event, std::uint64_t, std::uint64_t = 0) noexcept {}

}  // namespace ums::sched
