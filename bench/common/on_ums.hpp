// SPDX-License-Identifier: MIT
#pragma once

// bench/common/on_ums.hpp: a workload on libums.

#include <ums/ums.hpp>

#include <chrono>
#include <cstdint>

namespace bench {

struct on_ums {
    using runner = ums::fiber;
    static constexpr bool is_native = false;
    static void yield() { ums::this_fiber::yield(); }
    static void sleep_ns(std::uint64_t ns) {
        ums::this_fiber::sleep_for(std::chrono::nanoseconds{ns});
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
