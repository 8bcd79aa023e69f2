// SPDX-License-Identifier: MIT
// variants: migrate fifo p1 nomembarrier nosync
#include "ums/latch.hpp"

#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <random>
#include <stop_token>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "support/both_worlds.hpp"
#include "support/child.hpp"
#include "support/conservation.hpp"
#include "support/plain_thread.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"

namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using ums::fiber;
using ums::latch;
namespace this_fiber = ums::this_fiber;

static_assert(latch::max() >= std::latch::max());
static_assert(!std::is_copy_constructible_v<latch> && !std::is_copy_assignable_v<latch>);
static_assert(std::is_constructible_v<latch, std::ptrdiff_t> &&
              !std::is_convertible_v<std::ptrdiff_t, latch>);
static_assert(noexcept(std::declval<const latch&>().try_wait()));
constinit latch static_latch{latch::max()};

class latch_test : public conserving_test {};

TEST_F(latch_test, is_open_once_it_has_been_counted_down) {
    on_a_fiber_and_on_a_thread([] {
        latch l{5};
        l.count_down();
        l.count_down(0);
        l.count_down(3);
        EXPECT_FALSE(l.try_wait());
        l.count_down();
        EXPECT_TRUE(l.try_wait());
        l.wait();
        l.count_down(0);
        const latch none{0};
        EXPECT_TRUE(none.try_wait());
        none.wait();
    });
    static_latch.count_down(latch::max());
    EXPECT_TRUE(static_latch.try_wait());
}

TEST_F(latch_test, all_that_happened_before_is_visible_to_who_waited) {
    ums::run({.processors = 2}, [] {
        for (int round = 0; round < scaled(40, 10); ++round) {
            constexpr int arrivals = 12, waiters = 12;
            latch l{arrivals};
            int written[arrivals] = {};
            on_threads_and_fibers(4, arrivals + waiters - 4, [&](int n) {
                if (n % 2 == 0) {
                    written[n / 2] = n;
                    l.count_down();
                    return;
                }
                l.wait();
                for (int i = 0; i < arrivals; ++i) EXPECT_EQ(written[i], i * 2);
            });
        }
    });
}

TEST_F(latch_test, arrive_and_wait_lets_all_go_when_the_last_has_come) {
    ums::run({.processors = 2}, [] {
        constexpr int all = 50;
        latch l{all * 2};
        std::atomic<int> come = 0;
        on_threads_and_fibers(4, all - 4, [&](int) {
            ++come;
            l.arrive_and_wait(2);
            EXPECT_EQ(come, all);
        });
    });
}

TEST_F(latch_test, a_deadline_ends_the_wait_and_none_is_early) {
    on_a_fiber_and_on_a_thread([] {
        latch l{1};
        const auto start = steady_clock::now();
        EXPECT_FALSE(l.wait_for(2ms));
        EXPECT_GE(steady_clock::now(), start + 2ms);
        EXPECT_FALSE(l.wait_until(start));
        EXPECT_FALSE(l.wait_until(std::chrono::system_clock::now() + 1ms));
        l.count_down();
        EXPECT_TRUE(l.wait_for(-1s));
        EXPECT_TRUE(l.wait_until(steady_clock::time_point::min()));
    });
}

TEST_F(latch_test, a_stop_ends_the_wait_and_the_zero_is_preferred) {
    on_a_fiber_and_on_a_thread([] {
        latch l{1};
        std::stop_source stop;
        fiber a{[&] { EXPECT_FALSE(l.wait(stop.get_token())); }};
        plain_thread b{[&] { EXPECT_FALSE(l.wait(stop.get_token())); }};
        fiber stays{[&] { l.wait(); }};
        stop.request_stop();
        a.join();
        b.join();
        EXPECT_FALSE(l.wait(stop.get_token()));
        l.count_down();
        EXPECT_TRUE(l.wait(stop.get_token()));
        stays.join();
    });
}

// A caller that returns without success may leave nothing behind, and one that stays may not be
// forgotten.
TEST_F(latch_test, deadlines_race_with_the_last_count_down) {
    const auto seed = test_seed();
    ums::run({.processors = 2}, [seed] {
        std::minstd_rand random{static_cast<unsigned>(seed)};
        for (int round = 0; round < scaled(2000, 100); ++round) {
            auto l = std::make_unique<latch>(3);
            std::vector<fiber> all;
            for (int i = 0; i < 6; ++i)
                all.emplace_back([&l, i, ns = random() % 20'000] {
                    if (i % 3 == 0) l->count_down();
                    if (i % 2 == 0) {
                        l->wait();
                    } else if (!l->wait_for(std::chrono::nanoseconds{ns})) {
                        (void)l->wait_for(std::chrono::nanoseconds{ns});
                    }
                });
            l->count_down();
            while (!l->wait_for(std::chrono::nanoseconds{random() % 5'000})) {
            }
            for (fiber& f : all) f.join();
        }
    });
}

TEST_F(latch_test, may_be_destroyed_by_who_has_seen_it_open) {
    on_a_fiber_and_on_a_thread([] {
        for (int i = 0; i < scaled(600, 150); ++i) {
            auto* l = new latch{1};
            auto last = [l, i] {
                // Polling is rare, because where there are few CPUs it costs whole time slices.
                if (i % 32 == 0)
                    yield_until([l] { return l->try_wait(); });
                else if (i % 32 == 1)
                    yield_until([l] { return l->wait_for(1us); });
                else
                    l->wait();
                delete l;
            };
            if (i % 16 == 15) {
                plain_thread waiter{last};
                l->count_down();
                waiter.join();
            } else {
                fiber waiter{last};
                if (i % 2 == 0) this_fiber::yield();
                l->count_down();
                waiter.join();
            }
        }
    });
}

const child_program counts_too_far{"counts_too_far", [](const child_arguments&) {
                                       latch l{1};
                                       l.count_down(2);
                                       return 0;
                                   }};
const child_program counts_up{"counts_up", [](const child_arguments&) {
                                  latch l{1};
                                  l.count_down(-1);
                                  return 0;
                              }};
const child_program begins_below_zero{"begins_below_zero", [](const child_arguments&) {
                                          const latch l{-1};
                                          return 0;
                                      }};

TEST(latch_misuse_test, a_count_out_of_range_ends_the_program) {
    const auto says = [](const char* program, const char* message) {
        const child_end end = run_child(program);
        EXPECT_NE(end.code, 0) << program;
        EXPECT_NE(end.err.find(message), end.err.npos) << end;
    };
    says("counts_too_far", "a count would become negative");
    says("counts_up", "a count down by a negative number");
    says("begins_below_zero", "a count that is negative at its start");
}

}  // namespace
