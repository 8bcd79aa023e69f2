// SPDX-License-Identifier: MIT

// skynet [THREADS [DEPTH]]: a tree of ten children a node, which add up their numbers. The suite's
// depth is 8: 100,000,000 leaves.

#include "run.hpp"

#include <array>
#include <numeric>

static std::uint64_t skynet(std::uint64_t first, std::uint64_t leaves) {
    if (leaves == 1) return first;
    const auto share = leaves / 10;
    std::array<std::uint64_t, 10> sums;
    std::array<ums::fiber, 9> children;
    for (std::size_t i = 0; i < children.size(); ++i)
        children[i] = ums::fiber{bench::forked, [&sum = sums[i], first, share, i] {
                                     sum = skynet(first + i * share, share);
                                 }};
    sums[9] = skynet(first + 9 * share, share);
    for (auto& one : children) one.join();
    return std::accumulate(sums.begin(), sums.end(), std::uint64_t{0});
}

int main(int argc, char** argv) {
    std::uint64_t leaves = 1;
    for (auto depth = bench::number(argc, argv, 2, 8); depth > 0; --depth) leaves *= 10;
    return bench::on_processors(bench::threads(argc, argv, 1), [leaves] {
        (void)skynet(0, leaves);  // Warms up.
        const bench::stopwatch watch;
        const auto is = skynet(0, leaves);
        bench::report("iteration_count", 1, watch.us());
        return bench::check("sum", is, leaves * (leaves - 1) / 2);
    });
}
