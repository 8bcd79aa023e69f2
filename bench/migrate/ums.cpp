// SPDX-License-Identifier: MIT

// migrate: two clusters of one policy, with `processors` each. All fibers begin in the first; each
// goes to the other and back, ten times in all. (This is uThreads' experiment, with any number of
// fibers.)

#include "../common/on_ums.hpp"

#include <vector>

#include "../common/peer.hpp"

namespace {

constexpr int migrations = 10;

bench::tally lap(ums::cluster& first, ums::cluster& second, std::uint64_t fibers) {
    std::vector<ums::fiber> all;
    all.reserve(fibers);
    ums::latch go{1};
    for (std::uint64_t i = 0; i < fibers; ++i)
        all.emplace_back(ums::fiber_options{.cluster = &first}, [&] {
            go.wait();
            for (int k = 0; k < migrations; ++k)
                ums::this_fiber::migrate(k % 2 == 0 ? second : first);
        });
    const auto begin = bench::now_ns();
    go.count_down();
    for (auto& one : all) one.join();
    return {fibers * migrations, bench::now_ns() - begin};
}

}  // namespace

int main(int argc, char** argv) {
    return bench::run_peer(argc, argv, [](bench::cell& in, bench::line& out) {
        const auto processors = in.number("processors", 1, 1, 1024);
        const auto fibers = in.number("fibers", 10'000);
        const auto min_ms = in.number("min_ms", 300, 0);
        const auto policy = bench::on_ums::choose_policy(in).policy;
        in.done();

        bench::tally sum;
        ums::run(ums::options{.processors = 1}, [&] {
            const auto some = [&](const char* name) {
                return ums::cluster_options{.name = name,
                                            .processors = static_cast<unsigned>(processors),
                                            .policy = policy};
            };
            ums::cluster first{some("first")}, second{some("second")};
            const auto round = [&] { return lap(first, second, fibers); };
            round();  // Not measured: the stacks come from the kernel.
            sum = bench::repeat(min_ms, round);
            return 0;
        });
        out.add("ops", sum.ops).add("ns", sum.ns);
    });
}
