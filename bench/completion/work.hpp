// SPDX-License-Identifier: MIT
#pragma once

// completion: N tasks that each count `steps` steps, after a yield if `yields`. Timed from before
// the first task is made until the last has ended.

#include <cstdint>

#include "../common/peer.hpp"

namespace bench {

struct completion_cell {
    std::uint64_t tasks, steps, schedulers;
    bool yields;
};

inline void count_steps(std::uint64_t steps) noexcept {
    for (std::uint64_t i = 0; i < steps; ++i) asm volatile("" ::: "memory");
}

template <class Yield>
void run_task(const completion_cell& c, Yield yield) {
    if (c.yields) yield();
    count_steps(c.steps);
}

// `lap(cell)` runs all tasks once; `figures(line)` adds other figures.
template <class Lap, class Figures>
int run_completion(int argc, char** argv, Lap lap, Figures figures) {
    return run_peer(argc, argv, [&](cell& in, line& out) {
        completion_cell c{};
        in.number("processors", 1, 1, 1024);
        c.tasks = in.number("fibers", 1000);
        c.steps = in.number("steps", 5000);
        c.schedulers = in.number("schedulers", 1, 1, 1024);
        c.yields = in.word("way", {"run", "yield"}) == "yield";
        const auto min_ms = in.number("min_ms", 100, 0);
        in.done();
        const tally sum = repeat(min_ms, [&]() -> tally {
            const auto begin = now_ns();
            lap(c);
            return {c.tasks, now_ns() - begin};
        });
        out.add("ops", sum.ops).add("ns", sum.ns);
        figures(out);
    });
}

template <class Lap>
int run_completion(int argc, char** argv, Lap lap) {
    return run_completion(argc, argv, lap, [](line&) {});
}

}  // namespace bench
