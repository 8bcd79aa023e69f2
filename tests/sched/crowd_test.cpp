// SPDX-License-Identifier: MIT
// variants: migrate fifo p1 nomembarrier nosync
//
// Many fibers at once: a hundred thousand, and ten thousand under ThreadSanitizer. (With mprotect
// guards the kernel's limit of mappings is lower: that variant is left out.)
#include <atomic>
#include <chrono>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "support/conservation.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"
#include "support/variant.hpp"
#include "ums/run.hpp"
#include "ums/stats.hpp"
#include "ums/this_fiber.hpp"

namespace {

using std::chrono::steady_clock;
using ums::fiber;
using ums::fiber_ref;
namespace this_fiber = ums::this_fiber;

class crowd_test : public conserving_test {};

const int many = by_variant(scaled(100'000, 10'000), scaled(20'000, 10'000));
const int many_sleepers = by_variant(scaled(100'000, 5000), scaled(20'000, 5000));

TEST_F(crowd_test, all_live_at_once_and_all_end) {
    ums::run({.processors = 2}, [] {
        std::atomic<int> parked = 0, ended = 0;
        std::vector<fiber> all;
        for (int i = 0; i < many; ++i)
            all.emplace_back([&] {
                ++parked;
                this_fiber::park();
                ++ended;
            });
        while (parked < many) this_fiber::yield();
        EXPECT_EQ(ended, 0);
        std::set<ums::fiber_id> ids;
        for (const fiber& f : all) ids.insert(f.get_id());
        EXPECT_EQ(ids.size(), static_cast<std::size_t>(many));
        for (const fiber& f : all) f.ref().unpark();
        for (fiber& f : all) f.join();
        EXPECT_EQ(ended, many);
        EXPECT_EQ(ums::stats().spawned, static_cast<std::uint64_t>(many) + 1);
    });
}

TEST_F(crowd_test, all_yield_in_turn) {
    ums::run({.processors = 2}, [] {
        std::atomic<std::uint64_t> yields = 0;
        std::vector<fiber> all;
        for (int i = 0; i < many; ++i)
            all.emplace_back([&] {
                for (int n = 0; n < 5; ++n) {
                    this_fiber::yield();
                    yields.fetch_add(1, std::memory_order_relaxed);
                }
            });
        for (fiber& f : all) f.join();
        EXPECT_EQ(yields, std::uint64_t{5} * many);
    });
}

TEST_F(crowd_test, all_wait_for_one_another_in_a_ring) {
    ums::run({.processors = 2}, [] {
        const int links = is_scattered() ? many / 10 : many;
        std::vector<fiber> all;
        std::vector<fiber_ref> refs(static_cast<std::size_t>(links));
        std::atomic<int> here = 0;
        int laps = 0;  // Owned by the fiber that has the wake-up.
        for (std::size_t i = 0; i < refs.size(); ++i)
            all.emplace_back([&, i] {
                ++here;
                for (int lap = 0; lap < 2; ++lap) {
                    this_fiber::park();
                    laps += i == 0;
                    // The first has ended, and may have been joined, when the last comes round.
                    if (lap == 0 || i + 1 < refs.size()) refs[(i + 1) % refs.size()].unpark();
                }
            });
        for (std::size_t i = 0; i < refs.size(); ++i) refs[i] = all[i].ref();
        while (here < links) this_fiber::yield();
        refs[0].unpark();
        for (fiber& f : all) f.join();
        EXPECT_EQ(laps, 2);
    });
}

TEST_F(crowd_test, all_sleep_and_none_wakes_early) {
    const auto seed = test_seed();
    ums::run({.processors = 2}, [seed] {
        std::minstd_rand random{static_cast<unsigned>(seed)};
        std::atomic<int> early = 0, woken = 0;
        std::vector<fiber> all;
        for (int i = 0; i < many_sleepers; ++i)
            all.emplace_back([&, d = std::chrono::microseconds{random() % 300'000}] {
                const auto until = steady_clock::now() + d;
                this_fiber::sleep_until(until);
                early += steady_clock::now() < until;
                ++woken;
            });
        for (fiber& f : all) f.join();
        EXPECT_EQ(early, 0);
        EXPECT_EQ(woken, many_sleepers);
    });
}

TEST_F(crowd_test, all_deadlines_are_taken_back) {
    ums::run({.processors = 2}, [] {
        std::atomic<int> parked = 0, unparked = 0;
        std::vector<fiber> all;
        for (int i = 0; i < many_sleepers; ++i)
            all.emplace_back([&, i] {
                ++parked;
                const auto why = this_fiber::park_for(std::chrono::hours{1 + i % 100});
                unparked += why == ums::wake_reason::unparked;
            });
        while (parked < many_sleepers) this_fiber::yield();
        for (const fiber& f : all) f.ref().unpark();
        for (fiber& f : all) f.join();
        EXPECT_EQ(unparked, many_sleepers);
    });
}

}  // namespace
