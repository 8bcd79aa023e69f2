// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/bench/published.hpp: what the articles about user-mode scheduling measured, as they
// published it. docs/predecessors.md has all of it, with its sources.

#include <cstdint>

namespace tool::published {

// "windows-ums", a yield of Windows' threads, UMS workers and fibers on an i5-6200U, in ns.
struct windows_yield {
    std::uint64_t threads, yields;
    double native, worker, fiber;
};
inline constexpr windows_yield windows_yields[] = {
    {10, 100, 1201, 2752, 96},    {10, 1000, 633, 400, 105},     {10, 10'000, 640, 148, 101},
    {10, 100'000, 632, 118, 88},  {100, 100, 769, 1428, 130},    {100, 1000, 610, 245, 105},
    {100, 10'000, 601, 152, 102}, {100, 100'000, 591, 128, 102}, {1000, 100, 941, 1400, 175},
    {1000, 1000, 790, 276, 167},  {1000, 10'000, 793, 146, 177}, {1000, 100'000, 785, 127, 180},
};

}  // namespace tool::published
