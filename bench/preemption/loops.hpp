// SPDX-License-Identifier: MIT
#pragma once

// bench/preemption/loops.hpp: some runners compute in endless loops that never call their runtime.
// Meanwhile four others sleep for half a millisecond to one and a half, over and over, and note how
// late they run. This is the workload of all peers of preemption that are written in C++.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "../common/cell.hpp"
#include "../common/clock.hpp"
#include "../common/lateness.hpp"
#include "../common/line.hpp"

namespace bench {

struct loops_plan {
    std::uint64_t processors, loops, ms;
};

inline loops_plan loops_plan_of(cell& in) {
    loops_plan p{};
    p.processors = in.number("processors", 1, 1, 1024);
    p.loops = in.number("fibers", 1, 1, 10'000);
    p.ms = in.number("ms", 2000, 1, 600'000);
    return p;
}

template <class Runtime>
void measure_loops(const loops_plan& plan, line& out) {
    constexpr std::uint64_t sleepers = 4;
    std::atomic<bool> is_over{false};
    std::atomic<std::uint64_t> turns{0};
    std::vector<std::vector<std::int64_t>> late_ns(sleepers);
    const auto begun = now_ns();
    // A kernel thread ends it, because with a runtime that does not preempt nothing else could.
    std::thread ender{[&] {
        std::this_thread::sleep_for(std::chrono::milliseconds{plan.ms});
        is_over = true;
    }};
    Runtime::run(plan.processors, [&] {
        std::vector<typename Runtime::runner> all;
        for (std::uint64_t i = 0; i < sleepers; ++i)
            all.emplace_back([&, i] {
                for (std::uint64_t n = 0; !is_over; ++n) {
                    const auto length = 500'000 + sleep_ns(n * sleepers + i, 1'000'000);
                    const auto due = now_ns() + length;
                    Runtime::sleep_ns(length);
                    late_ns[i].push_back(static_cast<std::int64_t>(now_ns() - due));
                }
            });
        for (std::uint64_t i = 0; i < plan.loops; ++i)
            all.emplace_back([&] {
                std::uint64_t mine = 0;
                while (!is_over.load(std::memory_order_relaxed)) ++mine;
                turns += mine;
            });
        for (auto& one : all) one.join();
    });
    ender.join();
    const auto ns = static_cast<double>(now_ns() - begun);
    std::vector<std::int64_t> together;
    for (const auto& one : late_ns) together.insert(together.end(), one.begin(), one.end());
    out.add("turns_per_us", static_cast<double>(turns) * 1000.0 / ns);
    add_lateness(out, together);
}

}  // namespace bench
