// SPDX-License-Identifier: MIT
#pragma once

// bench/sleepers/night.hpp: the workload of all sleepers peers that are written in C++: N runners,
// each sleeps a random time once, and reports how late it woke.

#include <chrono>
#include <vector>

#include "../common/lateness.hpp"
#include "../common/peer.hpp"

namespace bench {

// `usual` is the number of sleepers unless the caller asks for another.
template <class Runtime>
int run_sleepers_peer(int argc, char** argv, std::uint64_t usual) {
    using clock = std::chrono::steady_clock;
    return run_peer(argc, argv, [usual](cell& in, line& out) {
        const auto processors = in.number("processors", 1, 1, 1024);
        const auto sleepers = in.number("fibers", usual);
        const auto longest_ns = in.number("longest_ms", 2000, 1, 100'000) * 1'000'000U;
        in.done();

        std::vector<std::int64_t> late_ns(sleepers);
        const auto cpu = cpu_ns();
        Runtime::run(processors, [&] {
            std::vector<typename Runtime::runner> all(sleepers);
            for (std::uint64_t i = 0; i < sleepers; ++i)
                all[i] = typename Runtime::runner{[&late_ns, longest_ns, i] {
                    const auto deadline =
                        clock::now() + std::chrono::nanoseconds{sleep_ns(i, longest_ns)};
                    Runtime::sleep_until(deadline);
                    late_ns[i] = std::chrono::nanoseconds{clock::now() - deadline}.count();
                }};
            for (auto& one : all) one.join();
        });
        out.add("ops", sleepers);
        out.add("cpu_us_per_op",
                static_cast<double>(cpu_ns() - cpu) / 1000.0 / static_cast<double>(sleepers));
        add_lateness(out, late_ns);
    });
}

}  // namespace bench
