// SPDX-License-Identifier: MIT

// sleepers: 10,000 fibers sleep at once, for different times. The program takes as long as the
// longest sleep.
//
// Output:
//   10000 fibers slept, 0 woke early

#include <atomic>
#include <chrono>
#include <cstdio>
#include <vector>

#include <ums/ums.hpp>

int main() {
    ums::run([] {
        using namespace std::chrono_literals;
        std::atomic<int> early = 0;
        std::vector<ums::fiber> sleepers;
        for (int i = 0; i < 10'000; ++i)
            sleepers.emplace_back([&early, i] {
                const auto until = std::chrono::steady_clock::now() + i % 200 * 1ms;
                ums::this_fiber::sleep_until(until);
                if (std::chrono::steady_clock::now() < until) ++early;
            });
        for (ums::fiber& f : sleepers) f.join();
        std::printf("%zu fibers slept, %d woke early\n", sleepers.size(), early.load());
    });
}
