// SPDX-License-Identifier: MIT
// variants: migrate fifo p1 nomembarrier nosync
#include "ums/wait_group.hpp"

#include <atomic>
#include <chrono>
#include <random>
#include <stop_token>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "support/both_worlds.hpp"
#include "support/child.hpp"
#include "support/conservation.hpp"
#include "support/one_processor.hpp"
#include "support/plain_thread.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"

namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using ums::fiber;
using ums::wait_group;
namespace this_fiber = ums::this_fiber;

static_assert(!std::is_copy_constructible_v<wait_group> && !std::is_copy_assignable_v<wait_group>);
constinit wait_group static_wait_group;

class wait_group_test : public conserving_test {};

TEST_F(wait_group_test, waits_for_nothing_while_the_count_is_zero) {
    on_a_fiber_and_on_a_thread([] {
        static_wait_group.wait();
        wait_group g{2};
        EXPECT_FALSE(g.try_wait());
        g.add(3);
        g.add(-4);
        EXPECT_FALSE(g.try_wait());
        g.add(0);
        g.done();
        EXPECT_TRUE(g.try_wait());
        g.wait();
    });
}

// Each piece of work may add more.
TEST_F(wait_group_test, waits_for_work_that_grows) {
    ums::run({.processors = 2}, [] {
        wait_group g;
        std::atomic<int> done = 0;
        auto work = [&](auto self, int depth) -> void {
            if (depth > 0) {
                g.add(2);
                for (int i = 0; i < 2; ++i)
                    fiber{[&, depth, self] { self(self, depth - 1); }}.detach();
            }
            ++done;
            g.done();
        };
        constexpr int depth = 9;
        g.add();
        plain_thread first{[&] { work(work, depth); }};
        plain_thread other{[&] {
            g.wait();
            EXPECT_EQ(done, (2 << depth) - 1);
        }};
        g.wait();
        EXPECT_EQ(done, (2 << depth) - 1);
        first.join();
        other.join();
    });
}

TEST_F(wait_group_test, is_used_again_as_soon_as_it_has_been_zero) {
    ums::run({.processors = 2}, [] {
        wait_group g;
        std::atomic<int> released = 0;
        for (int round = 0; round < scaled(1000, 100); ++round) {
            g.add();
            fiber a{[&] {
                g.wait();
                ++released;
            }};
            if (round % 2 == 0) this_fiber::yield();
            // The next round does not hold up the waiter of this one.
            g.done();
            if (round % 4 == 0) {
                yield_until([&] { return released == round + 1; });
                g.add();
                fiber b{[&] { g.done(); }};
                g.wait();
                b.join();
            }
            a.join();
        }
    });
}

TEST_F(wait_group_test, an_add_right_after_the_zero_does_not_hold_who_was_waiting) {
    ums::run(one_processor, [] {
        wait_group g{1};
        std::vector<fiber> all;
        for (int i = 0; i < 3; ++i) {
            all.emplace_back([&] { g.wait(); });
            this_fiber::yield();
        }
        g.done();
        g.add();
        for (fiber& f : all) f.join();
        EXPECT_FALSE(g.try_wait());
    });
}

TEST_F(wait_group_test, a_deadline_or_a_stop_ends_the_wait_and_the_zero_is_preferred) {
    on_a_fiber_and_on_a_thread([] {
        wait_group g{1};
        const auto start = steady_clock::now();
        EXPECT_FALSE(g.wait_for(2ms));
        EXPECT_GE(steady_clock::now(), start + 2ms);
        EXPECT_FALSE(g.wait_until(start));
        EXPECT_FALSE(g.wait_until(std::chrono::system_clock::now() + 1ms));
        std::stop_source stop;
        fiber f{[&] { EXPECT_FALSE(g.wait(stop.get_token())); }};
        plain_thread t{[&] { EXPECT_FALSE(g.wait(stop.get_token())); }};
        stop.request_stop();
        f.join();
        t.join();
        g.done();
        EXPECT_TRUE(g.wait_for(-1s));
        EXPECT_TRUE(g.wait(stop.get_token()));
    });
}

TEST_F(wait_group_test, deadlines_race_with_the_zero_again_and_again) {
    const auto seed = test_seed();
    ums::run({.processors = 2}, [seed] {
        constexpr int rounds = scaled(3000, 300);
        wait_group g;
        std::atomic<std::int64_t> passed = 0, gave_up = 0;
        on_threads_and_fibers(2, 14, [&](int n) {
            std::minstd_rand random{static_cast<unsigned>(seed) + static_cast<unsigned>(n)};
            for (int i = 0; i < rounds; ++i) {
                if (n % 4 == 0) {
                    const int some = static_cast<int>(random() % 3);
                    g.add(some);
                    if (random() % 2 == 0) this_fiber::yield();
                    for (int k = 0; k < some; ++k) g.done();
                } else {
                    ++(g.wait_for(std::chrono::nanoseconds{random() % 10'000}) ? passed : gave_up);
                }
            }
        });
        EXPECT_EQ(passed + gave_up, std::int64_t{12} * rounds);
        EXPECT_TRUE(g.try_wait());
    });
}

TEST_F(wait_group_test, may_be_destroyed_right_after_the_wake_up) {
    on_a_fiber_and_on_a_thread([] {
        for (int i = 0; i < scaled(3000, 300); ++i) {
            auto* g = new wait_group{1};
            fiber last{[g] {
                g->wait();
                delete g;
            }};
            if (i % 2 == 0) this_fiber::yield();
            g->done();
            last.join();
        }
    });
}

const child_program is_done_too_often{"is_done_too_often", [](const child_arguments&) {
                                          wait_group g{1};
                                          g.done();
                                          g.done();
                                          return 0;
                                      }};
const child_program adds_too_little{"adds_too_little", [](const child_arguments&) {
                                        wait_group g{1};
                                        g.add(-2);
                                        return 0;
                                    }};

TEST(wait_group_misuse_test, a_negative_count_ends_the_program) {
    for (const char* program : {"is_done_too_often", "adds_too_little"}) {
        const child_end end = run_child(program);
        EXPECT_NE(end.code, 0) << program;
        EXPECT_NE(end.err.find("a count would become negative"), end.err.npos) << end;
    }
}

}  // namespace
