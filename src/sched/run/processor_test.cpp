// SPDX-License-Identifier: MIT
// variants: migrate fifo p1 nomembarrier nosync
//
// Fairness: how long a processor can overlook a fiber, counted in switches.
#include "sched/run/processor.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "sched/run/carrier.hpp"
#include "support/conservation.hpp"
#include "support/one_processor.hpp"
#include "support/scale.hpp"
#include "ums/latch.hpp"
#include "ums/run.hpp"
#include "ums/this_fiber.hpp"

namespace {

using ums::fiber;
using ums::fiber_ref;
namespace this_fiber = ums::this_fiber;

constexpr int round = ums::sched::run_queue::round;

class processor_test : public conserving_test {};

TEST_F(processor_test, yield_lets_every_other_fiber_run_once) {
    ums::run(one_processor, [] {
        constexpr int many = 100, rounds = 200;
        std::vector<std::atomic<int>> turns(many);
        std::atomic<bool> is_fair = true;
        std::atomic<int> started = 0;
        std::vector<fiber> all;
        for (int i = 0; i < many; ++i)
            all.emplace_back([&, i] {
                ++started;
                while (started < many) this_fiber::yield();
                for (int r = 0; r < rounds; ++r) {
                    ++turns[static_cast<std::size_t>(i)];
                    for (const std::atomic<int>& t : turns) {
                        // No fiber is more than one turn away from any other, except, in the first
                        // round, from those that had not seen the last one start.
                        const int away = turns[static_cast<std::size_t>(i)] - t;
                        if (away > 2 || away < -2) is_fair = false;
                    }
                    this_fiber::yield();
                }
            });
        for (fiber& f : all) f.join();
        EXPECT_TRUE(is_fair);
    });
}

TEST_F(processor_test, yield_alone_returns) {
    ums::run({.processors = 1}, [] {
        for (int i = 0; i < 1000; ++i) this_fiber::yield();
    });
}

TEST_F(processor_test, two_fibers_that_wake_each_other_do_not_starve_a_third) {
    ums::run(one_processor, [] {
        std::atomic<bool> stop = false;
        std::atomic<std::uint64_t> passes = 0;
        fiber a, b;
        ums::latch done{2};
        auto pass = [&](const fiber& to) {
            while (!stop) {
                ++passes;
                to.ref().unpark();
                this_fiber::park();
            }
            to.ref().unpark();
            done.count_down();
        };
        std::atomic<bool> both = false;
        auto play = [&](const fiber& to) {
            while (!both) this_fiber::yield();
            pass(to);
        };
        a = fiber{[&] { play(b); }};
        b = fiber{[&] { play(a); }};
        both = true;
        std::uint64_t worst = 0;
        for (int i = 0; i < 100; ++i) {
            const std::uint64_t before = passes;
            this_fiber::yield();
            worst = std::max(worst, passes - before);
        }
        stop = true;
        done.wait();  // Until then they look at each other's handles.
        a.join();
        b.join();
        EXPECT_LE(worst, 2 * round);
        EXPECT_GT(passes, 0u);
    });
}

TEST_F(processor_test, fibers_that_spawn_and_join_for_ever_do_not_starve_others) {
    ums::run(one_processor, [] {
        std::atomic<bool> stop = false;
        std::atomic<std::uint64_t> joins = 0;
        fiber spawner{[&] {
            while (!stop) {
                fiber{[&] { ++joins; }}.join();
            }
        }};
        for (int i = 0; i < 200; ++i) this_fiber::yield();
        stop = true;
        spawner.join();
        EXPECT_GT(joins, 0u);
        EXPECT_LE(joins, 300u * round);
    });
}

TEST_F(processor_test, fibers_that_dispatch_for_ever_do_not_starve_others) {
    if (is_scattered()) GTEST_SKIP() << "nothing is dispatched then";
    ums::run(one_processor, [] {
        std::atomic<bool> stop = false;
        std::atomic<std::uint64_t> dispatched = 0;
        fiber spawner{[&] {
            while (!stop) fiber{{.launch = ums::launch::dispatch}, [&] { ++dispatched; }}.detach();
        }};
        for (int i = 0; i < 100; ++i) this_fiber::yield();
        stop = true;
        spawner.join();
        EXPECT_GT(dispatched, 0u);
    });
}

// Each ends and starts its successor, so the run-next slot is never empty.
void succeed(std::atomic<bool>& stop, std::atomic<std::uint64_t>& generations) {
    ++generations;
    if (!stop) fiber{succeed, std::ref(stop), std::ref(generations)}.detach();
}

TEST_F(processor_test, a_dynasty_of_fibers_does_not_starve_others) {
    std::atomic<bool> stop = false;
    std::atomic<std::uint64_t> generations = 0;
    ums::run(one_processor, [&] {
        fiber{succeed, std::ref(stop), std::ref(generations)}.detach();
        std::uint64_t worst = 0;
        for (int i = 0; i < 200; ++i) {
            const std::uint64_t before = generations;
            this_fiber::yield();
            worst = std::max(worst, generations - before);
        }
        stop = true;
        EXPECT_LE(worst, 2u * round);
    });
    EXPECT_GT(generations, 1u);
}

TEST_F(processor_test, what_is_unparked_from_outside_runs_within_a_slice_of_those_that_yield) {
    ums::runtime started{one_processor};
    std::atomic<bool> stop = false;
    std::atomic<std::uint64_t> yields = 0;
    std::vector<fiber> busy;
    constexpr std::uint64_t many = 5;
    for (std::uint64_t i = 0; i < many; ++i)
        busy.emplace_back([&] {
            while (!stop) {
                yields.fetch_add(1, std::memory_order_relaxed);
                this_fiber::yield();
            }
        });
    constexpr int rounds = scaled(1000, 100);
    std::atomic<int> woken = 0;
    std::atomic<std::uint64_t> at_wake = 0;
    fiber f{[&] {
        for (int i = 0; i < rounds; ++i) {
            this_fiber::park();
            at_wake = yields.load();
            ++woken;
        }
    }};
    std::uint64_t worst = 0;
    for (int i = 0; i < rounds; ++i) {
        f.ref().unpark();
        // The unpark is over here, so from now on the fiber can be found.
        const std::uint64_t before = yields;
        while (woken <= i) std::this_thread::yield();
        if (at_wake > before) worst = std::max(worst, at_wake - before);
    }
    stop = true;
    for (fiber& b : busy) b.join();
    f.join();
    // A round until it is found; then at most one turn of each fiber that is queued before it.
    EXPECT_LE(worst, round + many + 2);
}

TEST_F(processor_test, what_is_made_outside_runs_in_order_of_arrival) {
    ums::runtime started{one_processor};
    for (int round = 0; round < 50; ++round) {
        std::vector<int> order;
        std::mutex lock;
        std::atomic<bool> go = false, holds = false;
        // Holds the processor until all have arrived.
        fiber gate{[&] {
            holds = true;
            while (!go) std::this_thread::yield();
        }};
        while (!holds) std::this_thread::yield();
        std::vector<fiber> all;
        for (int i = 0; i < 100; ++i)
            all.emplace_back([&order, &lock, i] {
                const std::lock_guard guard{lock};
                order.push_back(i);
            });
        go = true;
        gate.join();
        for (fiber& f : all) f.join();
        ASSERT_EQ(order.size(), 100u);
        for (int i = 0; i < 100; ++i) ASSERT_EQ(order[static_cast<std::size_t>(i)], i);
    }
}

TEST_F(processor_test, the_fiber_made_ready_last_runs_next) {
    if (std::getenv("UMS_POLICY") != nullptr || is_scattered())
        GTEST_SKIP() << "only work stealing has a run-next slot";
    ums::run(one_processor, [] {
        // Not always, because at a round's end it goes to the back of the queue.
        int first = 0;
        for (int i = 0; i < round; ++i) {
            std::atomic<int> came_first = -1;
            std::vector<fiber> all;
            for (int n = 0; n < 5; ++n)
                all.emplace_back([&came_first, n] {
                    this_fiber::park();
                    int nobody = -1;
                    came_first.compare_exchange_strong(nobody, n);
                });
            this_fiber::yield();  // They park.
            for (const fiber& f : all) f.ref().unpark();
            this_fiber::yield();  // A join would run new ones newest first.
            for (fiber& f : all) f.join();
            first += came_first == 4;
        }
        EXPECT_GE(first, round * 3 / 4);
    });
}

}  // namespace
