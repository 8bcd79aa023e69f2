// SPDX-License-Identifier: MIT
#pragma once

// bench/common/on_ums.hpp: a workload on libums.

#include <ums/ums.hpp>

#include <chrono>
#include <cstdint>
#include <cstdlib>

#include "cell.hpp"

namespace bench {

struct on_ums {
    using runner = ums::fiber;
    static constexpr bool is_native = false;
    static void yield() { ums::this_fiber::yield(); }
    static void sleep_ns(std::uint64_t ns) {
        ums::this_fiber::sleep_for(std::chrono::nanoseconds{ns});
    }
    static void sleep_until(std::chrono::steady_clock::time_point limit) {
        ums::this_fiber::sleep_until(limit);
    }

    // What the cell asks of this runtime alone: the detector of blocking. Call it before the
    // runtime starts. If the cell names none, the environment's detector counts, or the best there
    // is.
    static void choose(cell& in) {
        const auto detector = in.word("detector", {"", "auto", "monitor", "off"});
        if (!detector.empty()) setenv("UMS_BLOCK", detector.c_str(), 1);
    }

    template <class Body>
    static void run(std::uint64_t processors, Body body, ums::options chosen = {}) {
        chosen.processors = static_cast<unsigned>(processors);
        ums::run(chosen, [&] {
            body();
            return 0;
        });
    }
};

}  // namespace bench
