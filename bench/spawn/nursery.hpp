// SPDX-License-Identifier: MIT
#pragma once

// bench/spawn/nursery.hpp: the workload of all spawn peers: way=one makes a runner and joins it,
// again and again; way=batch makes N, then joins all.
//
// `how` are functions. Their results come before the body in the runner's constructor, and are made
// anew for each runner, as a program would write it.

#include <vector>

#include "../common/peer.hpp"

namespace bench {

struct nursery {
    std::uint64_t processors, runners, min_ms;
    bool is_batch;
};

template <class Runtime>
nursery nursery_of(cell& in) {
    const auto processors = in.number("processors", 1, 1, 1024);
    const auto runners = in.number("fibers", 1000);
    const auto min_ms = in.number("min_ms", 100, 0);
    const bool is_batch = in.word("way", {"one", "batch"}) == "batch";
    Runtime::choose(in);
    return {processors, runners, min_ms, is_batch};
}

template <class Runner, class... How>
tally spawn_one_by_one(std::uint64_t times, How... how) {
    const auto begin = now_ns();
    for (std::uint64_t i = 0; i < times; ++i) {
        Runner child{how()..., [] {}};
        child.join();
    }
    return {times, now_ns() - begin};
}

template <class Runner, class... How>
tally spawn_batch(std::uint64_t runners, How... how) {
    std::vector<Runner> children;
    children.reserve(runners);
    const auto begin = now_ns();
    for (std::uint64_t i = 0; i < runners; ++i) children.emplace_back(how()..., [] {});
    for (auto& child : children) child.join();
    return {runners, now_ns() - begin};
}

template <class Runtime, class... How>
void measure_spawns(const nursery& plan, line& out, How... how) {
    using runner = typename Runtime::runner;
    const std::uint64_t times = Runtime::is_native ? 100 : 1000;
    tally sum;
    Runtime::run(plan.processors, [&] {
        const auto round = [&] {
            return plan.is_batch ? spawn_batch<runner>(plan.runners, how...)
                                 : spawn_one_by_one<runner>(times, how...);
        };
        // Not measured: the first stacks come from the kernel, the next ones from a cache.
        round();
        sum = repeat(plan.min_ms, round);
    });
    out.add("ops", sum.ops).add("ns", sum.ns);
}

}  // namespace bench
