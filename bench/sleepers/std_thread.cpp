// SPDX-License-Identifier: MIT

// sleepers: N kernel threads, each sleeps a random time once, and reports how late it woke.

#include <chrono>
#include <thread>
#include <vector>

#include "../common/lateness.hpp"
#include "../common/peer.hpp"

int main(int argc, char** argv) {
    using clock = std::chrono::steady_clock;
    return bench::run_peer(argc, argv, [](bench::cell& in, bench::line& out) {
        in.number("processors", 1, 1, 1024);
        const auto threads = in.number("fibers", 10'000);
        const auto longest_ns = in.number("longest_ms", 2000, 1, 100'000) * 1'000'000U;
        in.done();

        std::vector<std::int64_t> late_ns(threads);
        const auto cpu = bench::cpu_ns();
        std::vector<std::thread> handles(threads);
        for (std::uint64_t i = 0; i < threads; ++i)
            handles[i] = std::thread{[&late_ns, longest_ns, i] {
                const auto deadline =
                    clock::now() + std::chrono::nanoseconds{bench::sleep_ns(i, longest_ns)};
                std::this_thread::sleep_until(deadline);
                late_ns[i] = std::chrono::nanoseconds{clock::now() - deadline}.count();
            }};
        for (auto& handle : handles) handle.join();
        out.add("ops", threads);
        out.add("cpu_us_per_op",
                static_cast<double>(bench::cpu_ns() - cpu) / 1000.0 / static_cast<double>(threads));
        bench::add_lateness(out, late_ns);
    });
}
