// SPDX-License-Identifier: MIT
#pragma once

// bench/semaphore/rally.hpp: the workload of all semaphore peers: two runners wake each other in
// turn over two semaphores. One operation is a round trip.

#include "../common/rally.hpp"

namespace bench {

template <class Runtime, class Semaphore>
tally rally() {
    constexpr std::uint64_t trips = Runtime::is_native ? 1'000 : 2'000;
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
    return run_rally_peer<Runtime>(argc, argv, rally<Runtime, Semaphore>);
}

}  // namespace bench
