// SPDX-License-Identifier: MIT
// variants: migrate fifo p1 nomembarrier nosync
#include "ums/event.hpp"

#include <atomic>
#include <chrono>
#include <random>
#include <stop_token>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "support/both_worlds.hpp"
#include "support/conservation.hpp"
#include "support/one_processor.hpp"
#include "support/plain_thread.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"

namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using ums::auto_reset_event;
using ums::fiber;
using ums::manual_reset_event;
namespace this_fiber = ums::this_fiber;

class event_base_test : public conserving_test {};

template <class Event>
class event_test : public event_base_test {
    static_assert(!std::is_copy_constructible_v<Event> && !std::is_convertible_v<bool, Event>);
    static_assert(std::is_nothrow_default_constructible_v<Event>);
};
using every_event = ::testing::Types<manual_reset_event, auto_reset_event>;
TYPED_TEST_SUITE(event_test, every_event);

constinit manual_reset_event manual_of_static_storage;
constinit auto_reset_event auto_of_static_storage{true};

TYPED_TEST(event_test, is_set_from_set_to_reset) {
    on_a_fiber_and_on_a_thread([] {
        TypeParam e;
        EXPECT_FALSE(e.try_wait());
        e.set();
        e.set();
        e.reset();
        EXPECT_FALSE(e.try_wait());
        e.reset();
        e.set();
        EXPECT_TRUE(e.try_wait());
        TypeParam set{true};
        EXPECT_TRUE(set.try_wait());
    });
}

TYPED_TEST(event_test, a_wait_waits_for_a_set_by_anybody) {
    on_a_fiber_and_on_a_thread([] {
        for (int i = 0; i < scaled(200, 50); ++i) {
            TypeParam there, back;
            int written = 0;
            auto partner = [&] {
                there.wait();
                EXPECT_EQ(written, 1);
                written = 2;
                back.set();
            };
            auto rally = [&] {
                written = 1;
                there.set();
                back.wait();
                EXPECT_EQ(written, 2);
            };
            fiber f{partner};
            rally();
            f.join();
            there.reset();
            back.reset();
            if (i % 8 != 0) continue;
            plain_thread t{partner};
            rally();
            t.join();
        }
    });
}

TYPED_TEST(event_test, a_deadline_or_a_stop_ends_the_wait_and_the_event_is_preferred) {
    on_a_fiber_and_on_a_thread([] {
        TypeParam e;
        const auto start = steady_clock::now();
        EXPECT_FALSE(e.wait_for(2ms));
        EXPECT_GE(steady_clock::now(), start + 2ms);
        EXPECT_FALSE(e.wait_until(start));
        EXPECT_FALSE(e.wait_until(std::chrono::system_clock::now() + 1ms));
        std::stop_source stop;
        fiber f{[&] { EXPECT_FALSE(e.wait(stop.get_token())); }};
        plain_thread t{[&] { EXPECT_FALSE(e.wait(stop.get_token())); }};
        stop.request_stop();
        f.join();
        t.join();
        e.set();
        EXPECT_TRUE(e.wait_for(-1s));
        e.set();
        EXPECT_TRUE(e.wait_until(steady_clock::time_point::min()));
        e.set();
        EXPECT_TRUE(e.wait(stop.get_token()));
    });
}

TYPED_TEST(event_test, may_be_destroyed_right_after_the_wake_up) {
    on_a_fiber_and_on_a_thread([] {
        for (int i = 0; i < scaled(1500, 150); ++i) {
            auto* e = new TypeParam;
            auto last = [e, i] {
                // Polling is rare, because where there are few CPUs it costs whole time slices.
                if (i % 32 == 0)
                    yield_until([e] { return e->try_wait(); });
                else
                    e->wait();
                delete e;
            };
            if (i % 16 == 15) {
                plain_thread waiter{last};
                e->set();
                waiter.join();
            } else {
                fiber waiter{last};
                if (i % 2 == 0) this_fiber::yield();
                e->set();
                waiter.join();
            }
        }
    });
}

// A set() that finds the event set publishes as well.
TYPED_TEST(event_test, what_happened_before_any_set_is_visible) {
    ums::run({.processors = 2}, [] {
        for (int i = 0; i < scaled(100, 20); ++i) {
            TypeParam e;
            int written[2] = {};
            std::atomic<int> sets = 0;
            on_threads_and_fibers(1, 2, [&](int n) {
                if (n < 2) {
                    written[n] = 1;
                    e.set();
                    // relaxed: the event itself is to publish.
                    sets.fetch_add(1, std::memory_order_relaxed);
                    return;
                }
                while (sets.load(std::memory_order_relaxed) < 2) this_fiber::yield();
                e.wait();
                EXPECT_EQ(written[0] + written[1], 2);
            });
        }
    });
}

TEST_F(event_base_test, a_manual_one_lets_all_through_even_if_a_reset_follows) {
    manual_of_static_storage.set();
    EXPECT_TRUE(manual_of_static_storage.is_set());
    ums::run(one_processor, [] {
        manual_reset_event e;
        std::vector<fiber> all;
        for (int i = 0; i < 100; ++i) all.emplace_back([&] { e.wait(); });
        this_fiber::yield();
        e.set();
        for (fiber& f : all) f.join();

        // This wakes those that are already known to wait.
        e.reset();
        fiber waits{[&] { e.wait(); }};
        this_fiber::yield();
        e.set();
        e.reset();
        waits.join();
        EXPECT_FALSE(e.is_set());
    });
}

TEST_F(event_base_test, sets_resets_and_deadlines_of_a_manual_one_race) {
    const auto seed = test_seed();
    ums::run({.processors = 2}, [seed] {
        constexpr int rounds = scaled(3000, 300);
        manual_reset_event e;
        std::atomic<std::int64_t> passed = 0, gave_up = 0;
        on_threads_and_fibers(2, 14, [&](int n) {
            std::minstd_rand random{static_cast<unsigned>(seed) + static_cast<unsigned>(n)};
            for (int i = 0; i < rounds; ++i) {
                if (n % 4 == 0) {
                    if (random() % 3 == 0)
                        e.set();
                    else
                        e.reset();
                    if (random() % 2 == 0) this_fiber::yield();
                } else {
                    ++(e.wait_for(std::chrono::nanoseconds{random() % 10'000}) ? passed : gave_up);
                }
            }
        });
        EXPECT_EQ(passed + gave_up, std::int64_t{12} * rounds);
        e.reset();
        EXPECT_FALSE(e.is_set());
    });
}

TEST_F(event_base_test, an_automatic_one_remembers_one_set) {
    EXPECT_TRUE(auto_of_static_storage.try_wait());
    on_a_fiber_and_on_a_thread([] {
        auto_reset_event e;
        e.set();
        e.set();
        e.wait();
        EXPECT_FALSE(e.try_wait());
    });
}

TEST_F(event_base_test, an_automatic_one_lets_one_through_for_each_set_in_the_order_of_arrival) {
    ums::run(one_processor, [] {
        auto_reset_event e;
        std::vector<std::size_t> order;
        std::vector<fiber> all;
        for (std::size_t i = 0; i < 20; ++i) {
            all.emplace_back([&, i] {
                e.wait();
                order.push_back(i);
            });
            this_fiber::yield();
        }
        for (std::size_t i = 0; i < all.size(); ++i) {
            e.set();
            EXPECT_FALSE(e.try_wait());
            all[i].join();
            ASSERT_EQ(order.size(), i + 1);
            EXPECT_EQ(order.back(), i);
        }
        // With two waiters, two sets in a row let both through.
        fiber a{[&] { e.wait(); }}, b{[&] { e.wait(); }};
        this_fiber::yield();
        e.set();
        e.set();
        a.join();
        b.join();
        EXPECT_FALSE(e.try_wait());
    });
}

// Producers count up, then set; the consumer takes everything after each wait.
TEST_F(event_base_test, no_set_of_an_automatic_one_is_lost) {
    const auto seed = test_seed();
    ums::run({.processors = 2}, [seed] {
        constexpr int producers = 8, rounds = scaled(5000, 500);
        auto_reset_event e;
        std::atomic<int> items = 0;
        int taken = 0;
        fiber consumer{[&] {
            std::minstd_rand random{static_cast<unsigned>(seed)};
            while (taken < producers * rounds) {
                if (random() % 2 == 0)
                    e.wait();
                else if (!e.wait_for(std::chrono::nanoseconds{random() % 10'000}))
                    continue;
                // relaxed: the event publishes.
                taken += items.exchange(0, std::memory_order_relaxed);
            }
        }};
        on_threads_and_fibers(2, producers - 2, [&](int n) {
            for (int i = 0; i < rounds; ++i) {
                items.fetch_add(1, std::memory_order_relaxed);
                e.set();
                if ((i + n) % 8 == 0) this_fiber::yield();
            }
        });
        consumer.join();
        EXPECT_EQ(taken, producers * rounds);
    });
}

}  // namespace
