// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/bench/detectors.hpp: the detectors of blocking as a setting of a bench.

#include <string>
#include <vector>

#include "workload.hpp"

namespace tool {

// Parses the text of --detectors. Throws usage_error.
std::vector<std::string> detector_list(std::string_view text);

// Splits each group's cells of ums into groups of their own, one for each detector, next to each
// other, so that their costs beside the first are compared within one run. The cells of other
// runtimes stay, without a detector.
void split_by_detector(result& got);

// "with monitor / with off   1.003, lowest 0.998 (10 fibers)": a line for each detector but the
// first; empty without --detectors.
std::vector<std::string> detector_ratios(const result& got, const std::string& figure);

}  // namespace tool
