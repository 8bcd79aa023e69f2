// SPDX-License-Identifier: MIT
// variants: mprotect migrate fifo nomembarrier nosync

// Clusters: their processors come and go while fibers run, and fibers move from one cluster to
// another.

#include <atomic>
#include <chrono>
#include <random>
#include <system_error>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/conservation.hpp"
#include "support/error_of.hpp"
#include "support/one_processor.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"
#include "ums/cluster.hpp"
#include "ums/run.hpp"
#include "ums/this_fiber.hpp"

namespace {

using namespace std::chrono_literals;
namespace this_fiber = ums::this_fiber;

class cluster_test : public conserving_test {};

// The kernel thread that the caller runs on now; without a detector a processor stays with the one
// it began with. Not inlined, because the address of a thread-local must not outlive a switch.
[[gnu::noinline]] std::thread::id carrier_now() { return std::this_thread::get_id(); }

TEST_F(cluster_test, a_fiber_runs_only_in_its_cluster) {
    ums::run(one_processor, [] {
        const auto here = carrier_now();
        ums::cluster other{{.name = "other"}};
        ums::fiber{{.cluster = &other},
                   [&] {
                       for (int i = 0; i < 100; ++i) {
                           EXPECT_NE(carrier_now(), here);
                           this_fiber::yield();
                       }
                   }}
            .join();
    });
}

TEST_F(cluster_test, children_are_born_where_their_parent_runs) {
    ums::run(one_processor, [] {
        ums::cluster other{{}};
        ums::fiber{{.cluster = &other},
                   [] {
                       const auto there = carrier_now();
                       ums::fiber{[&] { EXPECT_EQ(carrier_now(), there); }}.join();
                   }}
            .join();
    });
}

TEST_F(cluster_test, a_fiber_migrates_there_and_back_under_load) {
    ums::run({.processors = 2}, [] {
        ums::cluster other{{.processors = 2}};
        ums::cluster& standard = ums::cluster::standard();
        std::atomic<int> moves{0};
        std::vector<ums::fiber> all;
        const int rounds = scaled(1000, 50);
        for (int i = 0; i < 50; ++i)
            all.emplace_back([&] {
                for (int k = 0; k < rounds; ++k) {
                    this_fiber::migrate(k % 2 == 0 ? other : standard);
                    moves.fetch_add(1, std::memory_order_relaxed);
                }
            });
        for (auto& f : all) f.join();
        EXPECT_EQ(moves.load(), 50 * rounds);
    });
}

TEST_F(cluster_test, migrating_to_where_it_is_does_nothing) {
    ums::run({.processors = 1}, [] { this_fiber::migrate(ums::cluster::standard()); });
}

TEST_F(cluster_test, the_destructor_waits_for_detached_fibers) {
    ums::run({.processors = 1}, [] {
        std::atomic<int> ended{0};
        {
            ums::cluster other{{.processors = 2}};
            for (int i = 0; i < 100; ++i)
                ums::fiber{{.cluster = &other},
                           [&] {
                               this_fiber::sleep_for(1ms);
                               ended.fetch_add(1);
                           }}
                    .detach();
        }
        EXPECT_EQ(ended.load(), 100);
    });
}

TEST_F(cluster_test, a_plain_thread_may_own_a_cluster) {
    ums::runtime started{{.processors = 1}};
    std::atomic<bool> ran{false};
    {
        ums::cluster own{{}};
        ums::fiber{{.cluster = &own}, [&] { ran = true; }}.detach();
    }
    EXPECT_TRUE(ran.load());
}

TEST_F(cluster_test, making_one_without_a_runtime_is_not_permitted) {
    EXPECT_EQ(error_of([] { ums::cluster{{}}; }), std::errc::operation_not_permitted);
}

TEST_F(cluster_test, no_processors_are_an_invalid_argument) {
    ums::run({.processors = 1}, [] {
        for (const unsigned n : {0u, 1025u})
            EXPECT_EQ(error_of([n] { ums::cluster{{.processors = n}}; }),
                      std::errc::invalid_argument);
    });
}

TEST_F(cluster_test, the_last_processor_cannot_be_removed) {
    ums::run({.processors = 1}, [] {
        ums::cluster other{{.processors = 2}};
        other.remove_processor();
        EXPECT_EQ(other.processors(), 1u);
        EXPECT_EQ(error_of([&] { other.remove_processor(); }), std::errc::invalid_argument);
        EXPECT_EQ(other.processors(), 1u);
    });
}

TEST_F(cluster_test, a_fiber_may_remove_the_processor_it_runs_on) {
    ums::run({.processors = 1}, [] {
        ums::cluster other{{.processors = 4}};
        // Repeated often: its joins of kernel threads block, so it loses its processor and is
        // stopped, anywhere in there, and those threads may be new ones.
        for (int round = 0; round < scaled(12, 4); ++round)
            ums::fiber{{.pinned = round % 2 == 1, .cluster = &other},
                       [&] {
                           while (other.processors() > 1) other.remove_processor();
                           while (other.processors() < 4) other.add_processor();
                       }}
                .join();
        EXPECT_EQ(other.processors(), 4u);
    });
}

TEST_F(cluster_test, a_sleeper_wakes_although_its_processor_was_removed) {
    ums::run({.processors = 1}, [] {
        ums::cluster other{{.processors = 4}};
        std::vector<ums::fiber> sleepers;
        for (int i = 0; i < 200; ++i)
            sleepers.emplace_back(ums::fiber_options{.cluster = &other}, [i] {
                this_fiber::sleep_for(std::chrono::microseconds{i * 50});
            });
        while (other.processors() > 1) other.remove_processor();
        for (auto& f : sleepers) f.join();
    });
}

TEST_F(cluster_test, processors_come_and_go_while_fibers_run_park_and_sleep) {
    std::mt19937_64 rng{test_seed()};
    ums::run({.processors = 2}, [&] {
        ums::cluster busy{{.processors = 3}};
        std::atomic<bool> stop{false};
        std::atomic<std::uint64_t> turns{0};
        std::vector<ums::fiber> all;
        for (int i = 0; i < 60; ++i)
            all.emplace_back(ums::fiber_options{.pinned = i % 5 == 0, .cluster = &busy}, [&, i] {
                std::mt19937 mine(static_cast<unsigned>(i));
                while (!stop.load(std::memory_order_relaxed)) {
                    turns.fetch_add(1, std::memory_order_relaxed);
                    switch (mine() % 4) {
                        case 0:
                            this_fiber::yield();
                            break;
                        case 1:
                            this_fiber::sleep_for(std::chrono::microseconds{mine() % 200});
                            break;
                        case 2:
                            ums::fiber{[] { this_fiber::yield(); }}.join();
                            break;
                        default:
                            this_fiber::ref().unpark();
                            this_fiber::park();
                    }
                }
            });
        for (int i = 0; i < scaled(300, 30); ++i) {
            if (busy.processors() > 1 && rng() % 2 == 0)
                busy.remove_processor();
            else if (busy.processors() < 6)
                busy.add_processor();
        }
        stop = true;
        for (auto& f : all) f.join();
        EXPECT_GT(turns.load(), 0u);
    });
}

TEST_F(cluster_test, several_may_add_and_remove_at_once) {
    ums::run({.processors = 2}, [] {
        ums::cluster busy{{.processors = 2}};
        std::vector<ums::fiber> all;
        for (int i = 0; i < 8; ++i)
            all.emplace_back([&] {
                for (int k = 0; k < scaled(30, 5); ++k) {
                    busy.add_processor();
                    busy.remove_processor();
                }
            });
        for (auto& f : all) f.join();
        EXPECT_EQ(busy.processors(), 2u);
    });
}

TEST_F(cluster_test, a_pinned_fiber_never_leaves_its_processor) {
    ums::run({.processors = 2, .block = ums::block_detection::off}, [] {
        std::vector<ums::fiber> all;
        for (int i = 0; i < 20; ++i)
            all.emplace_back(ums::fiber_options{.pinned = i % 2 == 0}, [i] {
                const auto home = carrier_now();
                for (int k = 0; k < scaled(2000, 100); ++k) {
                    if (k % 16 == 0) this_fiber::sleep_for(10us);
                    this_fiber::yield();
                    if (i % 2 == 0) {
                        ASSERT_EQ(carrier_now(), home);
                    }
                }
            });
        for (auto& f : all) f.join();
    });
}

TEST_F(cluster_test, who_waits_for_a_fiber_of_another_cluster_may_destroy_that_at_once) {
    ums::run({.processors = 2}, [] {
        for (int i = 0; i < scaled(300, 30); ++i) {
            ums::cluster brief{{}};
            ums::fiber{{.cluster = &brief}, [] {}}.join();
        }
    });
}

}  // namespace
