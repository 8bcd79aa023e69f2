// SPDX-License-Identifier: MIT
#pragma once

// run.hpp: what the programs of this folder share: the runtime, and the report in the suite's form.

#include "memusage.hpp"

#include <ums/ums.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace bench {

// A fork: the child runs at once, on the processor of its parent, and another processor may take
// the parent. So a tree is walked depth first.
inline const ums::fiber_options forked{.launch = ums::launch::dispatch};

// An argument that is a number, or `fallback` if there are not so many.
inline std::uint64_t number(int argc, char** argv, int at, std::uint64_t fallback) {
    return argc > at ? std::strtoull(argv[at], nullptr, 10) : fallback;
}

inline unsigned threads(int argc, char** argv, int at) {
    const auto cores = std::max(std::thread::hardware_concurrency() / 2, 1U);
    return static_cast<unsigned>(number(argc, argv, at, cores));
}

// Runs main_fiber() on that many processors; its value is the program's exit code.
template <class Main>
int on_processors(unsigned processors, Main main_fiber) {
    std::printf("threads: %u\n", processors);
    return ums::run(ums::options{.processors = processors}, main_fiber);
}

class stopwatch {
public:
    std::uint64_t us() const {
        const auto passed = std::chrono::steady_clock::now() - begin_;
        return static_cast<std::uint64_t>(
            std::chrono::duration_cast<std::chrono::microseconds>(passed).count());
    }

private:
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// One run, as build_and_bench_all.py reads it. `what` and `count` are the run's size; if `is_rate`,
// so many of them were done a second.
inline void report(const char* what, std::uint64_t count, std::uint64_t us, bool is_rate = false) {
    std::printf("runs:\n  - %s: %llu\n    duration: %llu us\n", what,
                static_cast<unsigned long long>(count), static_cast<unsigned long long>(us));
    if (is_rate)
        std::printf(
            "    %s/sec: %llu\n", what,
            static_cast<unsigned long long>(count * 1'000'000 / std::max<std::uint64_t>(us, 1)));
    std::printf("    max_rss: %ld KiB\n", peak_memory_usage());
}

// For a result that is not `expected`: says so, and returns the exit code.
inline int check(const char* what, std::uint64_t is, std::uint64_t expected) {
    if (is == expected) return 0;
    std::printf("FAIL: %s %llu, expected %llu\n", what, static_cast<unsigned long long>(is),
                static_cast<unsigned long long>(expected));
    return 1;
}

}  // namespace bench
