// SPDX-License-Identifier: MIT

// pingpong: two fibers of Boost.Fiber pass a token through two unbuffered channels. One operation
// is a round trip.

#include <boost/fiber/fiber.hpp>
#include <boost/fiber/unbuffered_channel.hpp>

#include "../common/boost_workers.hpp"
#include "../common/peer.hpp"

namespace {

constexpr std::uint64_t trips = 10'000;

bench::tally rally() {
    boost::fibers::unbuffered_channel<int> there;
    boost::fibers::unbuffered_channel<int> back;
    boost::fibers::fiber other{[&] {
        int token = 0;
        while (there.pop(token) == boost::fibers::channel_op_status::success) back.push(token);
    }};
    int token = 1;
    const auto begin = bench::now_ns();
    for (std::uint64_t i = 0; i < trips; ++i) {
        there.push(token);
        back.pop(token);
    }
    const auto ns = bench::now_ns() - begin;
    there.close();
    other.join();
    return {trips, ns};
}

}  // namespace

int main(int argc, char** argv) {
    return bench::run_peer(argc, argv, [](bench::cell& in, bench::line& out) {
        const auto processors = in.number("processors", 1, 1, 1024);
        in.number("fibers", 2, 2, 2);
        const auto min_ms = in.number("min_ms", 100, 0);
        in.done();

        bench::tally sum;
        bench::run_boost(processors, [&] { sum = bench::repeat(min_ms, rally); });
        out.add("ops", sum.ops).add("ns", sum.ns);
    });
}
