// SPDX-License-Identifier: MIT

// memory: N fibers, all parked at once. Each runs up to there before the next is made, which needs
// one pass over the stacks instead of two; launch=post makes all of them first.

#include <ums/ums.hpp>

#include <atomic>
#include <vector>

#include "../common/footprint.hpp"
#include "../common/peer.hpp"

int main(int argc, char** argv) {
    return bench::run_peer(argc, argv, [](bench::cell& in, bench::line& out) {
        const auto processors = in.number("processors", 1, 1, 1024);
        const auto fibers = in.number("fibers", 1'000'000);
        const bool post = in.word("launch", {"dispatch", "post"}) == "post";
        in.done();
        const ums::fiber_options how{.launch = post ? ums::launch::post : ums::launch::dispatch};

        ums::run(ums::options{.processors = static_cast<unsigned>(processors)}, [&] {
            std::vector<ums::fiber> handles(fibers);
            std::atomic<std::uint64_t> arrived{0};
            const bench::footprint footprint;
            for (auto& handle : handles)
                handle = ums::fiber{how, [&arrived] {
                                        // relaxed: only counted; nothing else is read through it.
                                        arrived.fetch_add(1, std::memory_order_relaxed);
                                        ums::this_fiber::park();
                                    }};
            while (arrived.load(std::memory_order_relaxed) != fibers) ums::this_fiber::yield();
            footprint.add_to(out, fibers);
            for (const auto& handle : handles) handle.ref().unpark();
            for (auto& handle : handles) handle.join();
            return 0;
        });
        out.add("peak_rss_bytes", bench::status_bytes("VmHWM"));
    });
}
