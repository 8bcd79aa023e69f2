// SPDX-License-Identifier: MIT

// spawn: way=one starts a kernel thread and joins it, again and again; way=batch starts N, then
// joins all.

#include <thread>
#include <vector>

#include "../common/peer.hpp"

namespace {

bench::tally one(std::uint64_t times) {
    const auto begin = bench::now_ns();
    for (std::uint64_t i = 0; i < times; ++i) {
        std::thread child{[] {}};
        child.join();
    }
    return {times, bench::now_ns() - begin};
}

bench::tally batch(std::uint64_t threads) {
    std::vector<std::thread> children;
    children.reserve(threads);
    const auto begin = bench::now_ns();
    for (std::uint64_t i = 0; i < threads; ++i) children.emplace_back([] {});
    for (auto& child : children) child.join();
    return {threads, bench::now_ns() - begin};
}

}  // namespace

int main(int argc, char** argv) {
    return bench::run_peer(argc, argv, [](bench::cell& in, bench::line& out) {
        in.number("processors", 1, 1, 1024);
        const auto threads = in.number("fibers", 1000);
        const auto min_ms = in.number("min_ms", 100, 0);
        const bool in_batch = in.word("way", {"one", "batch"}) == "batch";
        in.done();

        const auto round = [&] { return in_batch ? batch(threads) : one(100); };
        round();  // Not measured: libc keeps the stacks of the first threads for the next ones.
        const auto sum = bench::repeat(min_ms, round);
        out.add("ops", sum.ops).add("ns", sum.ns);
    });
}
