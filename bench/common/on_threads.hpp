// SPDX-License-Identifier: MIT
#pragma once

// bench/common/on_threads.hpp: a workload on kernel threads. The driver confines the process to as
// many CPUs as it gives the other runtimes processors.

#include <sched.h>

#include <chrono>
#include <cstdint>
#include <latch>
#include <thread>

#include "cell.hpp"

namespace bench {

struct on_threads {
    using runner = std::thread;
    static constexpr bool is_native = true;
    static void yield() { sched_yield(); }
    static void sleep_ns(std::uint64_t ns) {
        std::this_thread::sleep_for(std::chrono::nanoseconds{ns});
    }
    static void sleep_until(std::chrono::steady_clock::time_point limit) {
        std::this_thread::sleep_until(limit);
    }

    static void choose(cell&) {}

    // While a process has never had a second thread, the C library locks without atomic operations,
    // a price that no program pays that needs a lock.
    template <class Body>
    static void run(std::uint64_t, Body body) {
        std::latch over{1};
        std::thread company{[&over] { over.wait(); }};
        body();
        over.count_down();
        company.join();
    }
};

}  // namespace bench
