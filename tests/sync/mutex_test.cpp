// SPDX-License-Identifier: MIT
// variants: migrate fifo p1 nomembarrier nosync deadlock policies
#include "ums/mutex.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <random>
#include <stop_token>
#include <system_error>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "support/both_worlds.hpp"
#include "support/child.hpp"
#include "support/conservation.hpp"
#include "support/error_of.hpp"
#include "support/one_processor.hpp"
#include "support/plain_thread.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"
#include "ums/cluster.hpp"
#include "ums/jfiber.hpp"
#include "ums/run.hpp"
#include "ums/this_fiber.hpp"

namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using ums::fiber;
namespace this_fiber = ums::this_fiber;

static_assert(std::is_standard_layout_v<ums::mutex> && !std::is_copy_constructible_v<ums::mutex>);
static_assert(std::is_nothrow_default_constructible_v<ums::mutex>);
constinit ums::mutex static_mutex;  // Usable before main().

class mutex_base_test : public conserving_test {};

template <class Mutex>
class mutex_test : public mutex_base_test {};
using every_mutex = ::testing::Types<ums::mutex, ums::timed_mutex, ums::fair_mutex,
                                     ums::recursive_mutex, ums::recursive_timed_mutex>;
TYPED_TEST_SUITE(mutex_test, every_mutex);

template <class Mutex>
class timed_mutex_test : public mutex_base_test {};
using every_timed_mutex =
    ::testing::Types<ums::timed_mutex, ums::fair_mutex, ums::recursive_timed_mutex>;
TYPED_TEST_SUITE(timed_mutex_test, every_timed_mutex);

TYPED_TEST(mutex_test, the_std_guards_work_with_it) {
    on_a_fiber_and_on_a_thread([] {
        TypeParam a, b;
        { const std::lock_guard guard{static_mutex}; }
        { const std::lock_guard guard{a}; }
        { const std::scoped_lock guard{a, b}; }
        std::unique_lock lock{a, std::try_to_lock};
        EXPECT_TRUE(lock.owns_lock());
        lock.unlock();
        lock.lock();
    });
}

TYPED_TEST(mutex_test, try_lock_fails_while_another_holds_it) {
    on_a_fiber_and_on_a_thread([] {
        TypeParam m;
        m.lock();
        bool locked = true;
        fiber{[&] { locked = m.try_lock(); }}.join();
        EXPECT_FALSE(locked);
        plain_thread{[&] { locked = m.try_lock(); }}.join();
        EXPECT_FALSE(locked);
        m.unlock();
        fiber{[&] {
            locked = m.try_lock();
            if (locked) m.unlock();
        }}.join();
        EXPECT_TRUE(locked);
    });
}

// Counts without atomics, so a second fiber inside would be noticed.
TYPED_TEST(mutex_test, fibers_and_threads_exclude_each_other) {
    ums::run({.processors = 2}, [] {
        constexpr int fibers = 40, threads = 4, rounds = scaled(700, 200);
        TypeParam m;
        int inside = 0;
        std::uint64_t count = 0;
        auto work = [&](int n) {
            for (int i = 0; i < rounds; ++i) {
                const std::lock_guard guard{m};
                EXPECT_EQ(inside++, 0);
                ++count;
                if ((i + n) % 16 == 0) this_fiber::yield();
                EXPECT_EQ(--inside, 0);
            }
        };
        on_threads_and_fibers(threads, fibers, work);
        EXPECT_EQ(count, std::uint64_t{fibers + threads} * rounds);
    });
}

TYPED_TEST(mutex_test, a_stop_ends_the_wait_and_a_held_lock_is_preferred) {
    ums::run({.processors = 2}, [] {
        TypeParam m;
        std::stop_source stop;
        m.lock();
        ums::fiber waiter{[&] { EXPECT_FALSE(m.lock(stop.get_token())); }};
        this_fiber::yield();
        stop.request_stop();
        waiter.join();
        m.unlock();
        ums::fiber other{[&] {
            EXPECT_TRUE(m.lock(stop.get_token()));
            m.unlock();
        }};
        other.join();
    });
}

// The fiber that got the mutex last may destroy it, however far the previous holder's unlock is.
TYPED_TEST(mutex_test, may_be_destroyed_right_after_the_last_unlock) {
    ums::run({.processors = 2}, [] {
        for (int i = 0; i < scaled(3000, 300); ++i) {
            auto* m = new TypeParam;
            m->lock();
            fiber last{[m] {
                m->lock();
                m->unlock();
                delete m;
            }};
            if (i % 2 == 0) this_fiber::yield();
            m->unlock();
            last.join();
        }
    });
}

TYPED_TEST(timed_mutex_test, a_deadline_ends_the_wait_and_none_is_early) {
    on_a_fiber_and_on_a_thread([] {
        TypeParam m;
        m.lock();
        fiber other{[&] {
            const auto start = steady_clock::now();
            EXPECT_FALSE(m.try_lock_for(2ms));
            EXPECT_GE(steady_clock::now(), start + 2ms);
            EXPECT_FALSE(m.try_lock_until(start));
            EXPECT_FALSE(m.try_lock_until(std::chrono::system_clock::now() + 1ms));
            EXPECT_FALSE(m.try_lock_for(-1s));
        }};
        other.join();
        m.unlock();
        EXPECT_TRUE(m.try_lock_for(-1s));
        m.unlock();
        EXPECT_TRUE(m.try_lock_until(steady_clock::time_point::min()));
        m.unlock();
    });
}

TYPED_TEST(timed_mutex_test, deadlines_and_unlocks_race) {
    const auto seed = test_seed();
    ums::run({.processors = 2}, [seed] {
        constexpr int rounds = scaled(1500, 300);
        TypeParam m;
        std::uint64_t count = 0;
        std::atomic<std::uint64_t> got = 0, gave_up = 0;
        auto work = [&](int n) {
            std::minstd_rand random{static_cast<unsigned>(seed + n)};
            std::stop_source stop;
            for (int i = 0; i < rounds; ++i) {
                if (m.try_lock_for(std::chrono::nanoseconds{random() % 20'000})) {
                    ++count;
                    ++got;
                    if (random() % 4 == 0) this_fiber::yield();
                    m.unlock();
                } else {
                    ++gave_up;
                }
            }
        };
        on_threads_and_fibers(2, 16, work);
        EXPECT_EQ(count, got);
        EXPECT_EQ(got + gave_up, std::uint64_t{18} * rounds);
        EXPECT_TRUE(m.try_lock());
        m.unlock();
    });
}

TEST_F(mutex_base_test, the_owner_who_locks_again_is_told) {
    on_a_fiber_and_on_a_thread([] {
        ums::mutex m;
        ums::timed_mutex t;
        ums::fair_mutex f;
        const std::scoped_lock all{m, t, f};
        EXPECT_EQ(error_of([&] { m.lock(); }), std::errc::resource_deadlock_would_occur);
        EXPECT_EQ(error_of([&] { t.lock(); }), std::errc::resource_deadlock_would_occur);
        EXPECT_EQ(error_of([&] { (void)t.try_lock_for(1h); }),
                  std::errc::resource_deadlock_would_occur);
        EXPECT_EQ(error_of([&] { f.lock(); }), std::errc::resource_deadlock_would_occur);
        EXPECT_FALSE(m.try_lock());
    });
}

TEST_F(mutex_base_test, a_recursive_one_is_free_after_as_many_unlocks) {
    on_a_fiber_and_on_a_thread([] {
        ums::recursive_timed_mutex m;
        m.lock();
        m.lock();
        EXPECT_TRUE(m.try_lock());
        EXPECT_TRUE(m.try_lock_for(1ms));
        auto others_get_it = [&] {
            bool got = false;
            fiber{[&] {
                got = m.try_lock();
                if (got) m.unlock();
            }}.join();
            return got;
        };
        for (int i = 0; i < 4; ++i) {
            EXPECT_FALSE(others_get_it());
            m.unlock();
        }
        EXPECT_TRUE(others_get_it());
    });
}

TEST_F(mutex_base_test, a_recursive_one_that_was_locked_too_often_throws_from_lock_alone) {
    using state = ums::impl::mutex_state;
    static_assert(std::is_standard_layout_v<ums::recursive_timed_mutex> &&
                  sizeof(ums::recursive_timed_mutex) == sizeof(state));
    on_a_fiber_and_on_a_thread([] {
        ums::recursive_timed_mutex m;
        m.lock();
        std::uint32_t& depth = reinterpret_cast<state&>(m).depth;
        depth = ~std::uint32_t{0};
        EXPECT_FALSE(m.try_lock());
        EXPECT_FALSE(m.try_lock_for(1h));
        EXPECT_FALSE(m.try_lock_until(steady_clock::time_point::max()));
        EXPECT_EQ(error_of([&] { m.lock(); }), std::errc::resource_unavailable_try_again);
        EXPECT_EQ(error_of([&] { (void)m.lock(std::stop_token{}); }),
                  std::errc::resource_unavailable_try_again);
        depth = 1;
        m.unlock();
    });
}

TEST_F(mutex_base_test, a_fair_one_goes_round_in_the_order_of_arrival) {
    ums::run(one_processor, [] {
        ums::fair_mutex m;
        std::vector<int> order;
        m.lock();
        std::vector<fiber> all;
        for (int i = 0; i < 100; ++i) {
            all.emplace_back([&, i] {
                for (int n = 0; n < 3; ++n) {
                    const std::lock_guard guard{m};
                    order.push_back(i);
                }
            });
            this_fiber::yield();
        }
        m.unlock();
        for (fiber& f : all) f.join();
        ASSERT_EQ(order.size(), 300u);
        for (std::size_t i = 0; i < order.size(); ++i)
            EXPECT_EQ(order[i], static_cast<int>(i % 100));
    });
}

// A fiber that never parks between its sections does not keep the others out for ever.
TEST_F(mutex_base_test, a_barging_one_is_handed_over_after_some_overtakes) {
    ums::run(one_processor, [] {
        // Otherwise sections also pass between its attempts, and the attempts are counted.
        if (ums::cluster::standard().processors() != 1) GTEST_SKIP() << "needs one processor";
        ums::mutex m;
        std::atomic<bool> got = false;
        std::uint64_t sections = 0;
        m.lock();
        fiber waiter{[&] {
            const std::lock_guard guard{m};
            got = true;
        }};
        this_fiber::yield();
        m.unlock();
        // The waiter runs only inside the sections, so it always finds the mutex taken.
        while (!got) {
            const std::lock_guard guard{m};
            this_fiber::yield();
            ++sections;
        }
        EXPECT_LE(sections, ums::overtakes_most + 2);
        waiter.join();
    });
}

// The holder computes under the lock again and again, and never parks of itself. So another fiber
// gets the lock by a hand-over only, which is due when it has waited for a millisecond: some ten
// sections of the holder's, however slow the machine. Where the waiter is stopped before it waits,
// it loses a time slice.
TYPED_TEST(mutex_test, a_waiter_of_a_millisecond_is_handed_the_lock) {
    ums::run({.processors = 1}, [] {
        constexpr int waits = 5;
        TypeParam m;
        std::atomic<bool> is_inside = false, is_awaited = false, is_over = false;
        std::atomic<unsigned> sections = 0;
        fiber holder{[&] {
            while (!is_over) {
                const std::lock_guard guard{m};
                is_inside = true;
                while (!is_awaited && !is_over) this_fiber::yield();
                is_inside = false;
                const auto begin = steady_clock::now();
                while (steady_clock::now() - begin < 100us) {
                }
                ++sections;
            }
        }};
        std::vector<unsigned> overtaken;
        for (int i = 0; i < waits; ++i) {
            while (!is_inside) this_fiber::yield();
            const unsigned before = sections;
            is_awaited = true;
            m.lock();
            overtaken.push_back(sections - before);
            is_awaited = false;
            if (i + 1 == waits) is_over = true;
            m.unlock();
        }
        holder.join();
        std::sort(overtaken.begin(), overtaken.end());
        EXPECT_LE(overtaken[waits / 2], 20u);
        EXPECT_LE(overtaken.back(), 1000u);
    });
}

const child_program unlocks_free{"unlocks_free", [](const child_arguments&) {
                                     ums::run([] { ums::mutex{}.unlock(); });
                                     return 0;
                                 }};
const child_program unlocks_anothers{"unlocks_anothers", [](const child_arguments&) {
                                         ums::run([] {
                                             ums::recursive_mutex m;
                                             m.lock();
                                             fiber{{.name = "thief"}, [&] { m.unlock(); }}.join();
                                         });
                                         return 0;
                                     }};

TEST(mutex_misuse_test, an_unlock_of_what_one_does_not_hold_ends_the_program) {
    const child_end free = run_child("unlocks_free", {}, {});
    EXPECT_NE(free.code, 0);
    EXPECT_NE(free.err.find("unlock() of a mutex that nobody holds"), free.err.npos) << free;
    const child_end other = run_child("unlocks_anothers", {}, {});
    EXPECT_NE(other.code, 0);
    EXPECT_NE(other.err.find("unlock() of a mutex that another fiber or thread holds"),
              other.err.npos)
        << other;
    EXPECT_NE(other.err.find("thief"), other.err.npos) << other;
}

}  // namespace
