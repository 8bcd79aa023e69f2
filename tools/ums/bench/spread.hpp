// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/bench/spread.hpp: the median of a figure's samples, and its extremes.

#include <algorithm>
#include <cassert>
#include <vector>

namespace tool {

struct spread {
    double median = 0;
    double lowest = 0;
    double highest = 0;
};

// Requires: at least one sample.
inline spread spread_of(std::vector<double> samples) {
    assert(!samples.empty() && "there is no median of nothing");
    std::sort(samples.begin(), samples.end());
    const auto middle = samples.size() / 2;
    const bool even = samples.size() % 2 == 0;
    const double median = even ? (samples[middle - 1] + samples[middle]) / 2 : samples[middle];
    return {median, samples.front(), samples.back()};
}

}  // namespace tool
