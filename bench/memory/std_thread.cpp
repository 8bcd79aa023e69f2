// SPDX-License-Identifier: MIT

// memory: N kernel threads, all blocked on one futex. VmRSS does not include what the kernel keeps
// for a thread.

#include <sched.h>

#include <atomic>
#include <latch>
#include <thread>
#include <vector>

#include "../common/footprint.hpp"
#include "../common/peer.hpp"

int main(int argc, char** argv) {
    return bench::run_peer(argc, argv, [](bench::cell& in, bench::line& out) {
        in.number("processors", 1, 1, 1024);
        const auto threads = in.number("fibers", 10'000);
        in.done();

        std::vector<std::thread> handles(threads);
        std::latch release{1};
        std::atomic<std::uint64_t> arrived{0};
        const bench::footprint footprint;
        for (auto& handle : handles)
            handle = std::thread{[&] {
                // relaxed: only counted; nothing else is read through it.
                arrived.fetch_add(1, std::memory_order_relaxed);
                release.wait();
            }};
        while (arrived.load(std::memory_order_relaxed) != threads) sched_yield();
        footprint.add_to(out, threads);
        release.count_down();
        for (auto& handle : handles) handle.join();
        out.add("peak_rss_bytes", bench::status_bytes("VmHWM"));
    });
}
