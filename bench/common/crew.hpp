// SPDX-License-Identifier: MIT
#pragma once

// bench/common/crew.hpp: N runners of some runtime that start together.
//
// A Runtime is on_ums, on_boost or on_threads. They give the same names to what the workloads of
// the synchronisation types use, so that one text serves all of them.

#include <cstdint>
#include <latch>
#include <vector>

#include "race.hpp"

namespace bench {

// Runs work(0) to work(runners - 1), each on a runner of its own, and returns the ns from the
// common start to the end of the last.
template <class Runtime, class Work>
std::uint64_t run_crew(std::uint64_t runners, Work work) {
    race line{runners};
    // Kernel threads sleep until all exist, as in bench/yield/std_thread.cpp.
    std::latch created{1};
    std::vector<typename Runtime::runner> crew;
    crew.reserve(runners);
    for (std::uint64_t i = 0; i < runners; ++i)
        crew.emplace_back([&line, &created, &work, i] {
            if constexpr (Runtime::is_native) created.wait();
            line.start(Runtime::yield);
            work(i);
            line.finish();
        });
    created.count_down();
    line.open(Runtime::yield);
    for (auto& one : crew) one.join();
    return line.ns();
}

}  // namespace bench
