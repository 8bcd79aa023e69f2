// SPDX-License-Identifier: MIT

// spawn: way=one spawns a fiber of Boost.Fiber and joins it, again and again; way=batch spawns N,
// then joins all. The stack allocator and the launch policy are the caller's choice; the driver
// tries them and keeps the fastest.

#include <boost/fiber/fiber.hpp>
#include <boost/fiber/fixedsize_stack.hpp>
#include <boost/fiber/pooled_fixedsize_stack.hpp>

#include <memory>
#include <vector>

#include "../common/boost_workers.hpp"
#include "../common/peer.hpp"

namespace {

using boost::fibers::fiber;
using boost::fibers::launch;

template <class Stacks>
bench::tally one(launch way, Stacks& stacks, std::uint64_t times) {
    const auto begin = bench::now_ns();
    for (std::uint64_t i = 0; i < times; ++i) {
        fiber child{way, std::allocator_arg, stacks, [] {}};
        child.join();
    }
    return {times, bench::now_ns() - begin};
}

template <class Stacks>
bench::tally batch(launch way, Stacks& stacks, std::uint64_t fibers) {
    std::vector<fiber> children;
    children.reserve(fibers);
    const auto begin = bench::now_ns();
    for (std::uint64_t i = 0; i < fibers; ++i)
        children.emplace_back(way, std::allocator_arg, stacks, [] {});
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
        const auto way =
            in.word("launch", {"post", "dispatch"}) == "post" ? launch::post : launch::dispatch;
        const bool pooled = in.word("stack", {"fixed", "pooled"}) == "pooled";
        in.done();
        if (pooled && processors > 1)
            throw std::invalid_argument{"stack=pooled: the pool is not thread-safe"};

        bench::tally sum;
        bench::run_boost(processors, [&] {
            const auto measure = [&](auto stacks) {
                const auto round = [&] {
                    return in_batch ? batch(way, stacks, fibers) : one(way, stacks, 1000);
                };
                round();  // Not measured: the first stacks come from the kernel, the next ones from
                          // the allocator.
                sum = bench::repeat(min_ms, round);
            };
            if (pooled)
                measure(boost::fibers::pooled_fixedsize_stack{});
            else
                measure(boost::fibers::fixedsize_stack{});
        });
        out.add("ops", sum.ops).add("ns", sum.ns);
    });
}
