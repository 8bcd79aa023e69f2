// SPDX-License-Identifier: MIT

// scaling, way=wake: the main fiber unparks all N parked fibers, each of which parks again. One
// operation is one wake-up. (way=yield is the yield workload's peer.)

#include <ums/ums.hpp>

#include <atomic>
#include <vector>

#include "../common/peer.hpp"

namespace {

// Counts the fibers that a round has yet to wake. On one processor a locked instruction would cost
// as much as the wake-up that is measured, and it is not needed there.
class countdown {
public:
    explicit countdown(bool alone) : alone_{alone} {}

    void reset(std::uint64_t n) {
        left_.store(n, std::memory_order_relaxed);
    }  // relaxed: ordered by unpark().

    void arrive() {
        // sync(countdown): the main fiber that sees zero sees what the fiber did before.
        if (alone_)
            left_.store(left_.load(std::memory_order_relaxed) - 1, std::memory_order_release);
        else
            left_.fetch_sub(1, std::memory_order_release);
    }

    void wait() const {
        // sync(countdown)
        while (left_.load(std::memory_order_acquire) != 0) ums::this_fiber::yield();
    }

private:
    const bool alone_;
    std::atomic<std::uint64_t> left_{0};
};

bench::tally measure(std::uint64_t fibers, std::uint64_t min_ms, bool alone) {
    std::vector<ums::fiber> handles(fibers);
    countdown left{alone};
    std::atomic<bool> stop{false};  // relaxed: ordered by unpark().

    left.reset(fibers);
    for (auto& handle : handles)
        handle = ums::fiber{[&] {
            do {
                left.arrive();
                ums::this_fiber::park();
            } while (!stop.load(std::memory_order_relaxed));
        }};
    left.wait();

    const auto wake_all = [&] {
        for (const auto& handle : handles) handle.ref().unpark();
    };
    const auto sum = bench::repeat(min_ms, [&] {
        const auto begin = bench::now_ns();
        left.reset(fibers);
        wake_all();
        left.wait();
        return bench::tally{fibers, bench::now_ns() - begin};
    });
    stop.store(true, std::memory_order_relaxed);
    wake_all();
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
        ums::run(ums::options{.processors = static_cast<unsigned>(processors)}, [&] {
            sum = measure(fibers, min_ms, processors == 1);
            return 0;
        });
        out.add("ops", sum.ops).add("ns", sum.ns);
    });
}
