// SPDX-License-Identifier: MIT

// spawn: way=one spawns a fiber and joins it, again and again; way=batch spawns N, then joins all.

#include <ums/ums.hpp>

#include <vector>

#include "../common/detector.hpp"
#include "../common/peer.hpp"

namespace {

bench::tally one(ums::launch launch, std::uint64_t times) {
    const auto begin = bench::now_ns();
    for (std::uint64_t i = 0; i < times; ++i) {
        ums::fiber child{ums::fiber_options{.launch = launch}, [] {}};
        child.join();
    }
    return {times, bench::now_ns() - begin};
}

bench::tally batch(ums::launch launch, std::uint64_t fibers) {
    std::vector<ums::fiber> children;
    children.reserve(fibers);
    const auto begin = bench::now_ns();
    for (std::uint64_t i = 0; i < fibers; ++i)
        children.emplace_back(ums::fiber_options{.launch = launch}, [] {});
    for (auto& child : children) child.join();
    return {fibers, bench::now_ns() - begin};
}

}  // namespace

int main(int argc, char** argv) {
    return bench::run_peer(argc, argv, [](bench::cell& in, bench::line& out) {
        const auto processors = in.number("processors", 1, 1, 1024);
        const auto fibers = in.number("fibers", 1000);
        const auto min_ms = in.number("min_ms", 100, 0);
        const bool in_batch = in.word("way", {"one", "batch"}) == "batch";
        const bool dispatch = in.word("launch", {"post", "dispatch"}) == "dispatch";
        bench::use_detector(in);
        in.done();

        const auto launch = dispatch ? ums::launch::dispatch : ums::launch::post;
        const auto round = [&] { return in_batch ? batch(launch, fibers) : one(launch, 1000); };
        bench::tally sum;
        ums::run(ums::options{.processors = static_cast<unsigned>(processors)}, [&] {
            round();  // Not measured: the first stacks come from the kernel, the next ones from the
                      // cache.
            sum = bench::repeat(min_ms, round);
            return 0;
        });
        out.add("ops", sum.ops).add("ns", sum.ns);
    });
}
