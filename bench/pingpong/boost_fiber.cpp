// SPDX-License-Identifier: MIT

// pingpong: two fibers of Boost.Fiber pass a token through two unbuffered channels. One operation
// is a round trip.

#include <boost/fiber/unbuffered_channel.hpp>

#include "../common/on_boost.hpp"
#include "../common/rally.hpp"

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
    return bench::run_rally_peer<bench::on_boost>(argc, argv, rally);
}
