// SPDX-License-Identifier: MIT
#pragma once

// support/simulated_time.hpp: a clock that only the test moves, for policies that read one.

#include <atomic>
#include <cstdint>

inline std::atomic<std::int64_t> simulated{0};
inline std::int64_t read_simulated() noexcept { return simulated; }
