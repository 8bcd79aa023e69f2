// SPDX-License-Identifier: MIT
// variants: migrate fifo p1 nomembarrier nosync
#include "ums/barrier.hpp"

#include <atomic>
#include <barrier>
#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <stop_token>
#include <thread>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "support/both_worlds.hpp"
#include "support/child.hpp"
#include "support/conservation.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"

namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using ums::barrier;
using ums::fiber;
namespace this_fiber = ums::this_fiber;

using token = barrier<>::arrival_token;
static_assert(barrier<>::max() >= std::barrier<>::max());
static_assert(!std::is_copy_constructible_v<barrier<>> && !std::is_copy_assignable_v<barrier<>>);
static_assert(std::is_constructible_v<barrier<>, std::ptrdiff_t> &&
              !std::is_convertible_v<std::ptrdiff_t, barrier<>>);
static_assert(std::is_move_constructible_v<token> && std::is_move_assignable_v<token> &&
              !std::is_copy_constructible_v<token> && !std::is_default_constructible_v<token>);
constinit barrier<> static_barrier{1};

class barrier_test : public conserving_test {};

TEST_F(barrier_test, a_phase_ends_when_all_have_arrived) {
    on_a_fiber_and_on_a_thread([] {
        static_barrier.arrive_and_wait();
        barrier b{3};
        for (int phase = 0; phase < 3; ++phase) {
            token first = b.arrive();
            EXPECT_FALSE(b.wait_for(first, 0ns));
            token others = b.arrive(2);
            b.wait(std::move(first));
            b.wait(std::move(others));
        }
    });
}

// The completion function counts without atomics; all fibers see the same phase.
TEST_F(barrier_test, phases_follow_each_other_and_the_completion_runs_once_in_each) {
    ums::run({.processors = 2}, [] {
        constexpr int threads = 3, fibers = 17, all = threads + fibers, phases = scaled(500, 50);
        std::vector<int> step(all);
        int completed = 0;
        barrier b{all, [&]() noexcept {
                      ++completed;
                      for (const int s : step) EXPECT_EQ(s * 2, completed + completed % 2);
                  }};
        on_threads_and_fibers(threads, fibers, [&](int n) {
            for (int phase = 1; phase <= phases; ++phase) {
                step[static_cast<std::size_t>(n)] = phase;
                if ((phase + n) % 3 == 0)
                    b.wait(b.arrive());
                else
                    b.arrive_and_wait();
                EXPECT_EQ(completed, phase * 2 - 1);
                b.arrive_and_wait();
            }
        });
        EXPECT_EQ(completed, phases * 2);
    });
}

TEST_F(barrier_test, nobody_goes_on_before_the_completion_has_returned) {
    ums::run({.processors = 2}, [] {
        std::atomic<bool> is_complete = false, may_complete = false;
        barrier b{3, [&]() noexcept {
                      yield_until([&] { return may_complete.load(); });
                      is_complete = true;
                  }};
        std::vector<fiber> all;
        for (int i = 0; i < 3; ++i)
            all.emplace_back([&, i] {
                if (i == 0) {
                    b.wait(b.arrive());
                } else {
                    b.arrive_and_wait();
                }
                EXPECT_TRUE(is_complete);
            });
        for (int i = 0; i < 10; ++i) this_fiber::yield();
        may_complete = true;
        for (fiber& f : all) f.join();
    });
}

TEST_F(barrier_test, who_drops_out_is_not_expected_any_more) {
    ums::run({.processors = 2}, [] {
        constexpr int all = 20;
        std::atomic<int> left = all;
        int phases = 0;
        barrier b{all, [&]() noexcept { ++phases; }};
        on_threads_and_fibers(2, all - 2, [&](int n) {
            for (int phase = 0; phase < n; ++phase) b.arrive_and_wait();
            EXPECT_EQ(phases, n);
            --left;
            b.arrive_and_drop();
        });
        EXPECT_EQ(phases, all);
        EXPECT_EQ(left, 0);
    });
}

TEST_F(barrier_test, a_token_outlives_a_deadline_or_a_stop) {
    on_a_fiber_and_on_a_thread([] {
        barrier b{2};
        token mine = b.arrive();
        const auto start = steady_clock::now();
        EXPECT_FALSE(b.wait_for(mine, 2ms));
        EXPECT_GE(steady_clock::now(), start + 2ms);
        EXPECT_FALSE(b.wait_until(mine, start));
        EXPECT_FALSE(b.wait_until(mine, std::chrono::system_clock::now() + 1ms));
        std::stop_source stop;
        fiber stopper{[&] { stop.request_stop(); }};
        EXPECT_FALSE(b.wait(mine, stop.get_token()));
        stopper.join();
        token other = b.arrive();
        EXPECT_TRUE(b.wait_for(mine, -1s));
        EXPECT_TRUE(b.wait(mine, stop.get_token()));
        b.wait(std::move(mine));
        b.wait(std::move(other));
    });
}

TEST_F(barrier_test, deadlines_race_with_the_end_of_the_phase) {
    const auto seed = test_seed();
    ums::run({.processors = 2}, [seed] {
        constexpr int all = 8, phases = scaled(1000, 100);
        int completed = 0;
        barrier b{all, [&]() noexcept { ++completed; }};
        on_threads_and_fibers(2, all - 2, [&](int n) {
            std::minstd_rand random{static_cast<unsigned>(seed) + static_cast<unsigned>(n)};
            for (int phase = 0; phase < phases; ++phase) {
                auto mine = b.arrive();
                while (!b.wait_for(mine, std::chrono::nanoseconds{random() % 10'000})) {
                }
                EXPECT_GE(completed, phase + 1);
                b.arrive_and_wait();
            }
        });
        EXPECT_EQ(completed, phases * 2);
    });
}

TEST_F(barrier_test, may_be_destroyed_right_after_the_last_wake_up) {
    on_a_fiber_and_on_a_thread([] {
        for (int i = 0; i < scaled(3000, 300); ++i) {
            auto* b = new barrier{2};
            fiber last{[b] {
                b->arrive_and_wait();
                delete b;
            }};
            if (i % 2 == 0) this_fiber::yield();
            b->arrive_and_drop();
            last.join();
        }
    });
}

TEST_F(barrier_test, a_completion_function_may_be_large_or_move_only) {
    on_a_fiber_and_on_a_thread([] {
        auto count = std::make_unique<int>(0);
        const int* seen = count.get();
        barrier b{1, [count = std::move(count)]() mutable noexcept { ++*count; }};
        b.arrive_and_wait();
        b.arrive_and_wait();
        EXPECT_EQ(*seen, 2);
    });
}

const child_program arrives_too_often{"arrives_too_often", [](const child_arguments&) {
                                          barrier b{2};
                                          (void)b.arrive(3);
                                          return 0;
                                      }};
const child_program arrives_with_none{"arrives_with_none", [](const child_arguments&) {
                                          barrier b{2};
                                          (void)b.arrive(0);
                                          return 0;
                                      }};
const child_program expects_less_than_none{"expects_less_than_none", [](const child_arguments&) {
                                               const barrier<> b{-1};
                                               return 0;
                                           }};

TEST(barrier_misuse_test, a_count_out_of_range_ends_the_program) {
    const auto says = [](const char* program, const char* message) {
        const child_end end = run_child(program);
        EXPECT_NE(end.code, 0) << program;
        EXPECT_NE(end.err.find(message), end.err.npos) << end;
    };
    says("arrives_too_often", "an arrival of more than a barrier expects");
    says("arrives_with_none", "an arrival of less than one at a barrier");
    says("expects_less_than_none", "a barrier that expects a negative number");
}

}  // namespace
