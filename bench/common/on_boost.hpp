// SPDX-License-Identifier: MIT
#pragma once

// bench/common/on_boost.hpp: a workload on Boost.Fiber.

#include <boost/fiber/fiber.hpp>

#include <chrono>
#include <cstdint>

#include "boost_workers.hpp"
#include "cell.hpp"

namespace bench {

struct on_boost {
    using runner = boost::fibers::fiber;
    static constexpr bool is_native = false;
    static void yield() { boost::this_fiber::yield(); }
    static void sleep_ns(std::uint64_t ns) {
        boost::this_fiber::sleep_for(std::chrono::nanoseconds{ns});
    }
    static void sleep_until(std::chrono::steady_clock::time_point limit) {
        boost::this_fiber::sleep_until(limit);
    }

    static void choose(cell&) {}

    template <class Body>
    static void run(std::uint64_t processors, Body body) {
        run_boost(processors, body);
    }
};

}  // namespace bench
