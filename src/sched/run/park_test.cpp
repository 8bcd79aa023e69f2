// SPDX-License-Identifier: MIT
// variants: migrate fifo p1 nomembarrier
// (Not nosync: what libstdc++'s stop callbacks do on one kernel thread is ordered by that thread
// alone.)
#include "sched/run/park.hpp"

#include <atomic>
#include <chrono>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/both_worlds.hpp"
#include "support/conservation.hpp"
#include "support/one_processor.hpp"
#include "support/scale.hpp"
#include "ums/jfiber.hpp"
#include "ums/run.hpp"
#include "ums/this_fiber.hpp"

namespace {

using namespace std::chrono_literals;
using ums::deadline;
using ums::fiber;
using ums::fiber_ref;
using ums::wake_reason;
namespace this_fiber = ums::this_fiber;

class park_test : public conserving_test {};

deadline past() { return std::chrono::steady_clock::now() - 1s; }

// Whether an unpark is remembered. Consumes it.
bool is_remembered() { return this_fiber::park_until(past()) == wake_reason::unparked; }

TEST_F(park_test, an_unpark_that_comes_first_is_remembered) {
    on_a_fiber_and_on_a_thread([] {
        this_fiber::ref().unpark();
        this_fiber::park();
        EXPECT_FALSE(is_remembered());
    });
}

TEST_F(park_test, several_unparks_count_as_one) {
    on_a_fiber_and_on_a_thread([] {
        for (int i = 0; i < 5; ++i) this_fiber::ref().unpark();
        this_fiber::park();
        EXPECT_FALSE(is_remembered());
    });
}

TEST_F(park_test, without_an_unpark_nothing_is_remembered) {
    on_a_fiber_and_on_a_thread([] { EXPECT_FALSE(is_remembered()); });
}

TEST_F(park_test, a_timed_park_takes_a_remembered_unpark_first) {
    on_a_fiber_and_on_a_thread([] {
        this_fiber::ref().unpark();
        EXPECT_EQ(this_fiber::park_until(past()), wake_reason::unparked);
        this_fiber::ref().unpark();
        EXPECT_EQ(this_fiber::park_until(deadline::max()), wake_reason::unparked);
        EXPECT_FALSE(is_remembered());
    });
}

TEST_F(park_test, an_unpark_is_not_inherited_by_the_next_fiber_on_the_stack) {
    ums::run(one_processor, [] {
        for (int i = 0; i < 100; ++i) {
            fiber{[] { this_fiber::ref().unpark(); }}.join();
            bool remembered = true;
            fiber{[&] { remembered = is_remembered(); }}.join();
            ASSERT_FALSE(remembered);
        }
    });
}

// Two sides wake each other in turn; only the unparks order `balls`. One side:
void return_balls(int rounds, int& balls, fiber_ref to) {
    for (int i = 0; i < rounds; ++i) {
        this_fiber::park();
        ++balls;
        to.unpark();
    }
}
// The other:
void serve_balls(int rounds, int& balls, fiber_ref to) {
    for (int i = 0; i < rounds; ++i) {
        ++balls;
        to.unpark();
        this_fiber::park();
        ASSERT_EQ(balls, 2 * i + 2);
    }
}

TEST_F(park_test, fibers_and_threads_unpark_each_other) {
    ums::runtime started{{.processors = 2}};
    const fiber_ref thread = this_fiber::ref();
    EXPECT_TRUE(thread);
    EXPECT_EQ(thread.id(), ums::fiber_id{});
    int balls = 0;
    constexpr int rounds = scaled(5000, 500);
    fiber f{[&] { return_balls(rounds, balls, thread); }};
    serve_balls(rounds, balls, f.ref());
    f.join();
}

TEST_F(park_test, threads_unpark_each_other) {
    const fiber_ref main = this_fiber::ref();
    int balls = 0;
    constexpr int rounds = scaled(5000, 500);
    std::atomic<fiber_ref> other;
    std::thread t{[&] {
        other = this_fiber::ref();
        main.unpark();
        return_balls(rounds, balls, main);
    }};
    this_fiber::park();
    serve_balls(rounds, balls, other);
    t.join();
}

TEST_F(park_test, fibers_unpark_each_other) {
    ums::run({.processors = 2}, [] {
        const int rounds = is_scattered() ? scaled(10'000, 2000) : scaled(100'000, 2000);
        int balls = 0;
        fiber f{[&, main = this_fiber::ref()] { return_balls(rounds, balls, main); }};
        serve_balls(rounds, balls, f.ref());
        f.join();
    });
}

TEST_F(park_test, a_deadline_ends_a_park_and_not_early) {
    on_a_fiber_and_on_a_thread([] {
        for (const auto d : {0us, 1us, 100us, 3000us}) {
            const deadline limit = std::chrono::steady_clock::now() + d;
            EXPECT_EQ(this_fiber::park_until(limit), wake_reason::deadline_passed);
            EXPECT_GE(std::chrono::steady_clock::now(), limit);
            const auto before = std::chrono::steady_clock::now();
            EXPECT_EQ(this_fiber::park_for(d), wake_reason::deadline_passed);
            EXPECT_GE(std::chrono::steady_clock::now() - before, d);
        }
    });
}

TEST_F(park_test, a_deadline_in_the_past_ends_a_park_at_once) {
    on_a_fiber_and_on_a_thread([] {
        EXPECT_EQ(this_fiber::park_until(past()), wake_reason::deadline_passed);
        EXPECT_EQ(this_fiber::park_until(deadline{}), wake_reason::deadline_passed);
        EXPECT_EQ(this_fiber::park_until(deadline::min()), wake_reason::deadline_passed);
        EXPECT_EQ(this_fiber::park_for(0s), wake_reason::deadline_passed);
        EXPECT_EQ(this_fiber::park_for(-1ns), wake_reason::deadline_passed);
        EXPECT_EQ(this_fiber::park_for(std::chrono::hours::min()), wake_reason::deadline_passed);
        EXPECT_FALSE(is_remembered());
    });
}

TEST_F(park_test, the_last_deadline_never_comes) {
    on_a_fiber_and_on_a_thread([] {
        for (int i = 0; i < 3; ++i) {
            fiber waker{[to = this_fiber::ref()] {
                for (int y = 0; y < 1000; ++y) this_fiber::yield();
                to.unpark();
            }};
            EXPECT_EQ(i == 0   ? this_fiber::park_until(deadline::max())
                      : i == 1 ? this_fiber::park_for(std::chrono::hours::max())
                               : this_fiber::park_for(std::chrono::duration<double>{1e300}),
                      wake_reason::unparked);
            waker.join();
        }
    });
}

TEST_F(park_test, a_stop_ends_a_park) {
    on_a_fiber_and_on_a_thread([] {
        std::stop_source source;
        fiber stopper{[&] {
            for (int y = 0; y < 100; ++y) this_fiber::yield();
            source.request_stop();
        }};
        EXPECT_EQ(this_fiber::park(source.get_token()), wake_reason::stopped);
        stopper.join();
        EXPECT_FALSE(is_remembered());
    });
}

TEST_F(park_test, a_stop_that_came_before_ends_every_park) {
    on_a_fiber_and_on_a_thread([] {
        std::stop_source source;
        source.request_stop();
        const std::stop_token stop = source.get_token();
        for (int i = 0; i < 3; ++i) {
            EXPECT_EQ(this_fiber::park(stop), wake_reason::stopped);
            EXPECT_EQ(this_fiber::park_until(deadline::max(), stop), wake_reason::stopped);
        }
        // It has left no mark.
        EXPECT_EQ(this_fiber::park_until(past()), wake_reason::deadline_passed);
        this_fiber::ref().unpark();
        EXPECT_EQ(this_fiber::park(stop), wake_reason::unparked);
    });
}

TEST_F(park_test, with_a_stop_and_a_past_deadline_one_of_them_ends_it) {
    on_a_fiber_and_on_a_thread([] {
        std::stop_source source;
        source.request_stop();
        for (int i = 0; i < 100; ++i) {
            EXPECT_NE(this_fiber::park_until(past(), source.get_token()), wake_reason::unparked);
            EXPECT_FALSE(is_remembered());
        }
    });
}

TEST_F(park_test, a_token_without_a_source_is_none) {
    on_a_fiber_and_on_a_thread([] {
        const std::stop_token none;
        EXPECT_EQ(this_fiber::park_until(past(), none), wake_reason::deadline_passed);
        EXPECT_EQ(this_fiber::park_for(10us, none), wake_reason::deadline_passed);
        this_fiber::ref().unpark();
        EXPECT_EQ(this_fiber::park(none), wake_reason::unparked);
    });
}

TEST_F(park_test, an_unpark_after_the_deadline_is_remembered) {
    on_a_fiber_and_on_a_thread([] {
        EXPECT_EQ(this_fiber::park_for(1us), wake_reason::deadline_passed);
        this_fiber::ref().unpark();
        EXPECT_TRUE(is_remembered());
        EXPECT_FALSE(is_remembered());
    });
}

TEST_F(park_test, a_join_does_not_eat_an_unpark) {
    on_a_fiber_and_on_a_thread([] {
        for (int i = 0; i < scaled(1000, 100); ++i) {
            // Before, during and after the wait of the join.
            fiber f{[to = this_fiber::ref(), i] {
                for (int y = 0; y < i % 5; ++y) this_fiber::yield();
                to.unpark();
            }};
            f.join();
            ASSERT_TRUE(is_remembered()) << i;
            ASSERT_FALSE(is_remembered()) << i;
        }
    });
}

TEST_F(park_test, a_sleep_neither_ends_by_an_unpark_nor_eats_it) {
    on_a_fiber_and_on_a_thread([] {
        for (int i = 0; i < scaled(200, 30); ++i) {
            const auto limit = std::chrono::steady_clock::now() + std::chrono::microseconds{i};
            fiber f{[to = this_fiber::ref()] { to.unpark(); }};
            this_fiber::sleep_until(limit);
            EXPECT_GE(std::chrono::steady_clock::now(), limit);
            f.join();
            ASSERT_TRUE(is_remembered()) << i;
        }
    });
}

TEST_F(park_test, an_unpark_does_not_end_a_join) {
    on_a_fiber_and_on_a_thread([] {
        std::atomic<bool> joined = false;
        fiber f{[&, to = this_fiber::ref()] {
            for (int i = 0; i < 1000; ++i) {
                to.unpark();
                this_fiber::yield();
                EXPECT_FALSE(joined);
            }
        }};
        f.join();
        joined = true;
        EXPECT_TRUE(is_remembered());
    });
}

// The library's own waits: wake() and unpark() have separate memories.
TEST_F(park_test, internal_wakes_and_unparks_do_not_mix) {
    using ums::sched::park_kind;
    on_a_fiber_and_on_a_thread([] {
        this_fiber::ref().unpark();
        EXPECT_EQ(ums::sched::park(park_kind::internal, 0, nullptr),
                  ums::sched::parkable::reason::deadline);
        EXPECT_TRUE(is_remembered());
    });
}

// What was written before an unpark is seen after the park it ended: ThreadSanitizer checks.
TEST_F(park_test, an_unpark_publishes) {
    ums::run({.processors = 2}, [] {
        std::vector<int> written;
        std::vector<fiber> all;
        constexpr int length = scaled(1000, 200);
        for (int i = 0; i < length; ++i)
            all.emplace_back([&written, &all, i] {
                this_fiber::park();
                written.push_back(i);
                if (i + 1 < length) all[static_cast<std::size_t>(i) + 1].ref().unpark();
            });
        all[0].ref().unpark();
        for (fiber& f : all) f.join();
        EXPECT_EQ(written.size(), static_cast<std::size_t>(length));
    });
}

// A user's own condition variable, as the documentation suggests it: a flag and a loop.
TEST_F(park_test, a_stray_unpark_only_costs_another_round) {
    ums::run({.processors = 2}, [] {
        std::atomic<bool> done = false;
        std::atomic<int> rounds = 0;
        fiber f{[&] {
            do {
                this_fiber::park();
                ++rounds;
            } while (!done);
        }};
        for (int i = 0; i < 100; ++i) {
            f.ref().unpark();
            this_fiber::yield();
        }
        done = true;
        f.ref().unpark();
        f.join();
        EXPECT_GE(rounds, 1);
        EXPECT_LE(rounds, 101);
    });
}

TEST_F(park_test, parks_inside_a_catch_block) {
    ums::run({.processors = 2}, [] {
        std::vector<fiber> all;
        for (int i = 0; i < 50; ++i)
            all.emplace_back([i] {
                try {
                    throw i;
                } catch (int) {
                    this_fiber::sleep_for(1us);
                    this_fiber::park();
                    try {
                        throw;
                    } catch (int again) {
                        EXPECT_EQ(again, i);
                    }
                }
            });
        for (fiber& f : all) f.ref().unpark();
        for (fiber& f : all) f.join();
    });
}

// A callback of the stop wakes each parked fiber, on whatever thread the stop is requested.
TEST_F(park_test, one_stop_ends_many_parks) {
    ums::runtime started{{.processors = 2}};
    std::stop_source source;
    std::atomic<int> parking = 0, stopped = 0;
    std::vector<fiber> all;
    constexpr int many = scaled(1000, 100);
    for (int i = 0; i < many; ++i)
        all.emplace_back([&, i] {
            ++parking;
            const auto why = i % 2 == 0
                                 ? this_fiber::park(source.get_token())
                                 : this_fiber::park_until(deadline::max(), source.get_token());
            stopped += why == wake_reason::stopped;
        });
    while (parking < many / 2) std::this_thread::yield();
    source.request_stop();  // The other half finds it requested or not, as it happens.
    for (fiber& f : all) f.join();
    EXPECT_EQ(stopped, many);
}

}  // namespace
