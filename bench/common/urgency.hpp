// SPDX-License-Identifier: MIT
#pragma once

// bench/common/urgency.hpp: what a policy of libums may know of a fiber. The other runtimes have no
// use for it.

namespace bench {

struct urgency {
    int priority = 0;       // For priority: -4 to 3, the most urgent.
    unsigned weight = 100;  // For fair_share, as is the next.
    unsigned group = 0;
};

}  // namespace bench
