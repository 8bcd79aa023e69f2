// SPDX-License-Identifier: MIT
// variants: mprotect migrate fifo p1 nomembarrier nosync deadlock policies

// Everything at the same time, from a seed, with everything counted.

#include <atomic>
#include <chrono>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/conservation.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"
#include "support/variant.hpp"
#include "ums/jfiber.hpp"
#include "ums/run.hpp"
#include "ums/stats.hpp"
#include "ums/this_fiber.hpp"

namespace {

using namespace std::chrono_literals;
namespace this_fiber = ums::this_fiber;

class mixed_test : public conserving_test {};

// Throws and catches, with switches in between.
void through_exceptions(std::mt19937_64& rng) {
    const std::string text = std::to_string(rng());
    try {
        throw std::runtime_error{text};
    } catch (const std::exception& e) {
        this_fiber::yield();
        ASSERT_EQ(e.what(), text);
        try {
            throw;
        } catch (const std::runtime_error& again) {
            this_fiber::sleep_for(1us);
            ASSERT_EQ(again.what(), text);
        }
    }
}

TEST_F(mixed_test, everything_that_begins_ends) {
    const std::uint64_t seed = test_seed();
    std::atomic<std::uint64_t> begun{0}, ended{0};
    ums::run([&] {
        auto counted = [&](auto body) {
            begun.fetch_add(1, std::memory_order_relaxed);
            return [&, body] {
                body();
                ended.fetch_add(1, std::memory_order_relaxed);
            };
        };
        std::vector<ums::fiber> all;
        for (int i = 0; i < scaled(400, 60); ++i)
            all.emplace_back(counted([&, i] {
                std::mt19937_64 rng{seed + static_cast<unsigned>(i)};
                for (int k = 0; k < 40; ++k) {
                    switch (rng() % 9) {
                        case 0:
                            this_fiber::yield();
                            break;
                        case 1:
                            ums::fiber{counted([] {})}.join();
                            break;
                        case 2:
                            ums::fiber{counted([] { this_fiber::yield(); })}.detach();
                            break;
                        case 3:
                            this_fiber::sleep_for(std::chrono::microseconds{rng() % 300});
                            break;
                        case 4:
                            through_exceptions(rng);
                            break;
                        case 5: {
                            ums::fiber partner{
                                counted([who = this_fiber::ref()] { who.unpark(); })};
                            this_fiber::park();
                            partner.join();
                            break;
                        }
                        case 6:
                            ASSERT_EQ(
                                ums::spawn(ums::fiber_options{.launch = ums::launch::dispatch},
                                           [k] { return k; })
                                    .join(),
                                k);
                            break;
                        case 7: {
                            ums::jfiber waits{counted([] { this_fiber::park_for(100us); })};
                            if (rng() % 2 == 0) waits.ref().unpark();
                            break;
                        }
                        default: {
                            ums::fiber big{ums::fiber_options{.stack_bytes = 256 * 1024},
                                           counted([] {
                                               volatile char deep[100'000];
                                               deep[0] = 1;
                                               this_fiber::yield();
                                               ASSERT_EQ(deep[0], 1);
                                           })};
                            big.join();
                        }
                    }
                }
            }));
        for (auto& f : all) f.join();
    });
    EXPECT_EQ(begun.load(), ended.load());
}

TEST_F(mixed_test, ten_thousand_fibers_meet) {
    ums::run([] {
        constexpr int n = 10'000;
        std::atomic<int> arrived{0};
        std::vector<ums::fiber> all;
        all.reserve(n);
        std::vector<int> mark(n);
        for (int i = 0; i < n; ++i)
            all.emplace_back([&, i] {
                mark[static_cast<unsigned>(i)] = i;
                arrived.fetch_add(1, std::memory_order_release);
                this_fiber::park();
                mark[static_cast<unsigned>(i)] += 1;
            });
        while (arrived.load(std::memory_order_acquire) != n) this_fiber::yield();
        for (auto& f : all) f.ref().unpark();
        for (auto& f : all) f.join();
        for (int i = 0; i < n; ++i) ASSERT_EQ(mark[static_cast<unsigned>(i)], i + 1);
    });
}

TEST_F(mixed_test, plain_threads_and_fibers_wake_each_other) {
    ums::runtime started;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([] {
            for (int i = 0; i < scaled(2000, 100); ++i) {
                const ums::fiber_ref me = this_fiber::ref();
                std::atomic<bool> done{false};
                ums::fiber f{[&] {
                    this_fiber::park();
                    done.store(true, std::memory_order_release);
                    me.unpark();
                }};
                f.ref().unpark();
                this_fiber::park();
                ASSERT_TRUE(done.load(std::memory_order_acquire));
                f.join();
            }
        });
    for (auto& t : threads) t.join();
}

TEST_F(mixed_test, one_woken_from_outside_may_end_the_runtime_at_once) {
    const int rounds = by_variant(scaled(500, 50), scaled(150, 50));
    for (int i = 0; i < rounds; ++i) {
        std::thread waker;
        ums::run([&] {
            waker = std::thread{[who = this_fiber::ref()] { who.unpark(); }};
            this_fiber::park();
        });
        waker.join();
    }
}

}  // namespace
