// SPDX-License-Identifier: MIT

// pingpong: two kernel threads pass a token through two binary semaphores. One operation is a round
// trip.

#include <semaphore>
#include <thread>

#include "../common/peer.hpp"

namespace {

constexpr std::uint64_t trips = 1'000;

bench::tally rally() {
    std::binary_semaphore there{0};
    std::binary_semaphore back{0};
    std::thread other{[&] {
        for (std::uint64_t i = 0; i < trips; ++i) {
            there.acquire();
            back.release();
        }
    }};
    const auto begin = bench::now_ns();
    for (std::uint64_t i = 0; i < trips; ++i) {
        there.release();
        back.acquire();
    }
    const auto ns = bench::now_ns() - begin;
    other.join();
    return {trips, ns};
}

}  // namespace

int main(int argc, char** argv) {
    return bench::run_peer(argc, argv, [](bench::cell& in, bench::line& out) {
        in.number("processors", 1, 1, 1024);
        in.number("fibers", 2, 2, 2);
        const auto min_ms = in.number("min_ms", 100, 0);
        in.done();

        const auto sum = bench::repeat(min_ms, rally);
        out.add("ops", sum.ops).add("ns", sum.ns);
    });
}
