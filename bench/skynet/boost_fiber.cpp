// SPDX-License-Identifier: MIT

// skynet: as in Boost.Fiber's own published program: detached children with small stacks push their
// sums into the parent's buffered channel. Measured and rejected: joining the children (half the
// speed, three times the memory) and launch::post (a million stacks at once).

#include <boost/fiber/buffered_channel.hpp>

#include <memory>

#include "../common/boost_stacks.hpp"
#include "../common/on_boost.hpp"
#include "tree.hpp"

namespace {

using boost::fibers::launch;
using channel = boost::fibers::buffered_channel<std::uint64_t>;
using bench::fan_out;

// The published program uses two pages. Here that would overflow at the dynamic linker's first call
// through a lazily bound symbol, which saves the vector registers.
constexpr std::size_t stack_bytes = 16384;

template <class Stacks>
void skynet(Stacks& stacks, channel& result, std::uint64_t first, std::uint64_t leaves) {
    if (leaves == 1) {
        result.push(first);
        return;
    }
    const auto share = leaves / fan_out;
    channel sums{16};
    for (std::uint64_t i = 0; i < fan_out; ++i)
        boost::fibers::fiber{
            launch::dispatch, std::allocator_arg, stacks,
            [&stacks, &sums, first, share, i] { skynet(stacks, sums, first + i * share, share); }}
            .detach();
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < fan_out; ++i) sum += sums.value_pop();
    result.push(sum);
}

template <class Stacks>
std::uint64_t run(Stacks stacks, std::uint64_t leaves) {
    channel result{2};
    boost::fibers::fiber root{launch::dispatch, std::allocator_arg, stacks,
                              [&] { skynet(stacks, result, 0, leaves); }};
    const auto sum = result.value_pop();
    root.join();
    return sum;
}

}  // namespace

int main(int argc, char** argv) {
    return bench::run_peer(argc, argv, [](bench::cell& in, bench::line& out) {
        const auto processors = in.number("processors", 1, 1, 1024);
        const auto leaves = in.number("fibers", 1'000'000);
        const bool is_pooled = bench::wants_pooled_stacks(in, processors);
        in.done();
        bench::measure_skynet<bench::on_boost>(processors, leaves, out, [&] {
            std::uint64_t sum = 0;
            bench::with_boost_stacks(is_pooled, stack_bytes,
                                     [&](auto stacks) { sum = run(stacks, leaves); });
            return sum;
        });
    });
}
