// SPDX-License-Identifier: MIT

// sleepers: N fibers, each sleeps a random time once, and reports how late it woke.

#include <ums/ums.hpp>

#include <chrono>
#include <vector>

#include "../common/lateness.hpp"
#include "../common/peer.hpp"

int main(int argc, char** argv) {
    using clock = std::chrono::steady_clock;
    return bench::run_peer(argc, argv, [](bench::cell& in, bench::line& out) {
        const auto processors = in.number("processors", 1, 1, 1024);
        const auto fibers = in.number("fibers", 1'000'000);
        const auto longest_ns = in.number("longest_ms", 2000, 1, 100'000) * 1'000'000U;
        in.done();

        std::vector<std::int64_t> late_ns(fibers);
        const auto cpu = bench::cpu_ns();
        ums::run(ums::options{.processors = static_cast<unsigned>(processors)}, [&] {
            std::vector<ums::fiber> handles(fibers);
            for (std::uint64_t i = 0; i < fibers; ++i)
                handles[i] = ums::fiber{[&late_ns, longest_ns, i] {
                    const auto deadline =
                        clock::now() + std::chrono::nanoseconds{bench::sleep_ns(i, longest_ns)};
                    ums::this_fiber::sleep_until(deadline);
                    late_ns[i] = std::chrono::nanoseconds{clock::now() - deadline}.count();
                }};
            for (auto& handle : handles) handle.join();
            return 0;
        });
        out.add("ops", fibers);
        out.add("cpu_us_per_op",
                static_cast<double>(bench::cpu_ns() - cpu) / 1000.0 / static_cast<double>(fibers));
        bench::add_lateness(out, late_ns);
    });
}
