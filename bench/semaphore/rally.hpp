// SPDX-License-Identifier: MIT
#pragma once

// bench/semaphore/rally.hpp: the workload of all semaphore peers: two runners wake each other in
// turn over two semaphores. One operation is a round trip.

#include "../common/peer.hpp"

namespace bench {

template <class Runtime, class Semaphore>
tally rally() {
    constexpr std::uint64_t trips = Runtime::is_native ? 1'000 : 10'000;
    Semaphore there{0};
    Semaphore back{0};
    typename Runtime::runner other{[&] {
        for (std::uint64_t i = 0; i < trips; ++i) {
            there.acquire();
            back.release();
        }
    }};
    const auto begin = now_ns();
    for (std::uint64_t i = 0; i < trips; ++i) {
        there.release();
        back.acquire();
    }
    const auto ns = now_ns() - begin;
    other.join();
    return {trips, ns};
}

template <class Runtime, class Semaphore>
int run_semaphore_peer(int argc, char** argv) {
    return run_peer(argc, argv, [](cell& in, line& out) {
        const auto processors = in.number("processors", 1, 1, 1024);
        in.number("fibers", 2, 2, 2);
        const auto min_ms = in.number("min_ms", 100, 0);
        in.done();

        tally sum;
        Runtime::run(processors, [&] { sum = repeat(min_ms, rally<Runtime, Semaphore>); });
        out.add("ops", sum.ops).add("ns", sum.ns);
    });
}

}  // namespace bench
