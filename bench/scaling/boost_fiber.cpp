// SPDX-License-Identifier: MIT

// scaling, way=wake: the main fiber notifies one condition variable on which all N fibers of
// Boost.Fiber wait, each of which waits again. One operation is one wake-up. (way=yield is the
// yield workload's peer.)

#include <boost/fiber/fiber.hpp>

#include <mutex>
#include <vector>

#include "../common/boost_workers.hpp"
#include "../common/peer.hpp"

namespace {

bench::tally measure(std::uint64_t fibers, std::uint64_t min_ms) {
    std::vector<boost::fibers::fiber> handles(fibers);
    boost::fibers::mutex lock;
    boost::fibers::condition_variable woken;
    std::uint64_t left = fibers;  // Guarded by lock, as are the next two.
    std::uint64_t round = 0;
    bool stop = false;

    for (auto& handle : handles)
        handle = boost::fibers::fiber{[&] {
            std::unique_lock held{lock};
            while (!stop) {
                --left;
                woken.wait(held, [&, seen = round] { return round != seen; });
            }
        }};
    const auto wait = [&] {
        for (;;) {
            {
                const std::lock_guard held{lock};
                if (left == 0) return;
            }
            boost::this_fiber::yield();
        }
    };
    const auto wake_all = [&](bool last) {
        {
            const std::lock_guard held{lock};
            left = fibers;
            ++round;
            stop = last;
        }
        woken.notify_all();
    };

    wait();
    const auto sum = bench::repeat(min_ms, [&] {
        const auto begin = bench::now_ns();
        wake_all(false);
        wait();
        return bench::tally{fibers, bench::now_ns() - begin};
    });
    wake_all(true);
    for (auto& handle : handles) handle.join();
    return sum;
}

}  // namespace

int main(int argc, char** argv) {
    return bench::run_peer(argc, argv, [](bench::cell& in, bench::line& out) {
        const auto processors = in.number("processors", 1, 1, 1024);
        const auto fibers = in.number("fibers", 1000);
        const auto min_ms = in.number("min_ms", 30, 0);
        in.done();

        bench::tally sum;
        bench::run_boost(processors, [&] { sum = measure(fibers, min_ms); });
        out.add("ops", sum.ops).add("ns", sum.ns);
    });
}
