// SPDX-License-Identifier: MIT

// memory: N fibers of Boost.Fiber with its default stacks, all blocked on one condition variable.
// Each runs up to there before the next is made; launch=post makes all of them first.

#include <boost/fiber/fiber.hpp>

#include <atomic>
#include <mutex>
#include <vector>

#include "../common/boost_workers.hpp"
#include "../common/footprint.hpp"
#include "../common/peer.hpp"

int main(int argc, char** argv) {
    return bench::run_peer(argc, argv, [](bench::cell& in, bench::line& out) {
        const auto processors = in.number("processors", 1, 1, 1024);
        const auto fibers = in.number("fibers", 100'000);
        const auto way = in.word("launch", {"dispatch", "post"}) == "post"
                             ? boost::fibers::launch::post
                             : boost::fibers::launch::dispatch;
        in.done();

        bench::run_boost(processors, [&] {
            std::vector<boost::fibers::fiber> handles(fibers);
            boost::fibers::mutex lock;
            boost::fibers::condition_variable released;
            bool release = false;
            std::uint64_t arrived = 0;  // Guarded by lock.
            const auto all_arrived = [&] {
                const std::lock_guard held{lock};
                return arrived == fibers;
            };
            const bench::footprint footprint;
            for (auto& handle : handles)
                handle = boost::fibers::fiber{way, [&] {
                                                  std::unique_lock held{lock};
                                                  ++arrived;
                                                  released.wait(held, [&] { return release; });
                                              }};
            while (!all_arrived()) boost::this_fiber::yield();
            footprint.add_to(out, fibers);
            {
                const std::lock_guard held{lock};
                release = true;
            }
            released.notify_all();
            for (auto& handle : handles) handle.join();
        });
        out.add("peak_rss_bytes", bench::status_bytes("VmHWM"));
    });
}
