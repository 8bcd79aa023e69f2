// SPDX-License-Identifier: MIT
#pragma once

// bench/common/detector.hpp: a peer on libums runs with the detector of blocking that its cell names.

#include <cstdlib>
#include <string>

#include "cell.hpp"

namespace bench {

// Before the runtime starts. The environment's, or the best there is, if the cell names none.
inline void use_detector(cell& in) {
    const auto detector = in.word("detector", {"", "auto", "monitor", "off"});
    if (!detector.empty()) setenv("UMS_BLOCK", detector.c_str(), 1);
}

}  // namespace bench
