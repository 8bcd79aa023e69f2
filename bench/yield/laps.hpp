// SPDX-License-Identifier: MIT
#pragma once

// bench/yield/laps.hpp: the workload of all yield peers: N runners, each yields M times. With
// measure=cycles, the cycles of each single switch.

#include <latch>
#include <vector>

#include "../common/peer.hpp"
#include "../common/race.hpp"
#include "../common/switch_clock.hpp"

namespace bench {

template <class Runtime, class Step>
tally lap(std::uint64_t runners, std::uint64_t yields, Step step) {
    race race{runners};
    // Threads sleep until all exist: if they yielded at the start line from the beginning, the
    // creation of the last would have to compete with all the others.
    std::latch created{1};
    std::vector<typename Runtime::runner> all;
    all.reserve(runners);
    for (std::uint64_t i = 0; i < runners; ++i)
        all.emplace_back([&race, &created, yields, step] {
            if (Runtime::is_native) created.wait();
            race.start(Runtime::yield);
            for (std::uint64_t y = 0; y < yields; ++y) step();
            race.finish();
        });
    created.count_down();
    race.open(Runtime::yield);
    for (auto& one : all) one.join();
    return {runners * yields, race.ns()};
}

template <class Runtime>
int run_yield_peer(int argc, char** argv) {
    return run_peer(argc, argv, [](cell& in, line& out) {
        const auto processors = in.number("processors", 1, 1, 1024);
        const auto fibers = in.number("fibers", 10);
        const auto yields = in.number("yields", 1000);
        const auto min_ms = in.number("min_ms", 30, 0);
        const bool count_cycles = in.word("measure", {"time", "cycles"}) == "cycles";
        Runtime::choose(in);
        in.done();

        switch_clock clock;
        tally sum;
        Runtime::run(processors, [&] {
            if (count_cycles)
                sum = lap<Runtime>(fibers, yields, [&clock] {
                    clock.before();
                    Runtime::yield();
                    clock.after();
                });
            else
                sum = repeat(min_ms, [&] { return lap<Runtime>(fibers, yields, Runtime::yield); });
        });
        out.add("ops", sum.ops).add("ns", sum.ns);
        if (count_cycles) out.add("cycles_per_op", clock.cycles_per_switch());
    });
}

}  // namespace bench
