// SPDX-License-Identifier: MIT

// yield: N fibers, each yields M times. With measure=cycles, the cycles of each single switch.

#include <ums/ums.hpp>

#include <vector>

#include "../common/detector.hpp"
#include "../common/peer.hpp"
#include "../common/race.hpp"
#include "../common/switch_clock.hpp"

namespace {

void yield() { ums::this_fiber::yield(); }

template <class Step>
bench::tally lap(std::uint64_t fibers, std::uint64_t yields, Step step) {
    bench::race race{fibers};
    std::vector<ums::fiber> runners;
    runners.reserve(fibers);
    for (std::uint64_t i = 0; i < fibers; ++i)
        runners.emplace_back([&race, yields, step] {
            race.start(yield);
            for (std::uint64_t y = 0; y < yields; ++y) step();
            race.finish();
        });
    race.open(yield);
    for (auto& runner : runners) runner.join();
    return {fibers * yields, race.ns()};
}

}  // namespace

int main(int argc, char** argv) {
    return bench::run_peer(argc, argv, [](bench::cell& in, bench::line& out) {
        const auto processors = in.number("processors", 1, 1, 1024);
        const auto fibers = in.number("fibers", 10);
        const auto yields = in.number("yields", 1000);
        const auto min_ms = in.number("min_ms", 30, 0);
        const bool count_cycles = in.word("measure", {"time", "cycles"}) == "cycles";
        bench::use_detector(in);
        in.done();

        bench::switch_clock clock;
        bench::tally sum;
        ums::run(ums::options{.processors = static_cast<unsigned>(processors)}, [&] {
            if (count_cycles)
                sum = lap(fibers, yields, [&clock] {
                    clock.before();
                    yield();
                    clock.after();
                });
            else
                sum = bench::repeat(min_ms, [&] { return lap(fibers, yields, yield); });
            return 0;
        });
        out.add("ops", sum.ops).add("ns", sum.ns);
        if (count_cycles) out.add("cycles_per_op", clock.cycles_per_switch());
    });
}
