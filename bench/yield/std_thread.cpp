// SPDX-License-Identifier: MIT

// yield: N kernel threads, each calls sched_yield M times. The driver confines the process to as
// many CPUs as it gives the other runtimes processors. With measure=cycles, the cycles of each
// single switch.

#include <sched.h>

#include <latch>
#include <thread>
#include <vector>

#include "../common/peer.hpp"
#include "../common/race.hpp"
#include "../common/switch_clock.hpp"

namespace {

void yield() { sched_yield(); }

template <class Step>
bench::tally lap(std::uint64_t threads, std::uint64_t yields, Step step) {
    bench::race race{threads};
    // Threads sleep until all exist: if they yielded at the start line from the first moment on,
    // creating the last would have to compete with all the others.
    std::latch created{1};
    std::vector<std::thread> runners;
    runners.reserve(threads);
    for (std::uint64_t i = 0; i < threads; ++i)
        runners.emplace_back([&race, &created, yields, step] {
            created.wait();
            race.start(yield);
            for (std::uint64_t y = 0; y < yields; ++y) step();
            race.finish();
        });
    created.count_down();
    race.open(yield);
    for (auto& runner : runners) runner.join();
    return {threads * yields, race.ns()};
}

}  // namespace

int main(int argc, char** argv) {
    return bench::run_peer(argc, argv, [](bench::cell& in, bench::line& out) {
        in.number("processors", 1, 1, 1024);
        const auto threads = in.number("fibers", 10);
        const auto yields = in.number("yields", 1000);
        const auto min_ms = in.number("min_ms", 30, 0);
        const bool count_cycles = in.word("measure", {"time", "cycles"}) == "cycles";
        in.done();

        bench::switch_clock clock;
        bench::tally sum;
        if (count_cycles)
            sum = lap(threads, yields, [&clock] {
                clock.before();
                yield();
                clock.after();
            });
        else
            sum = bench::repeat(min_ms, [&] { return lap(threads, yields, yield); });
        out.add("ops", sum.ops).add("ns", sum.ns);
        if (count_cycles) out.add("cycles_per_op", clock.cycles_per_switch());
    });
}
