// SPDX-License-Identifier: MIT
// variants: migrate fifo p1 nomembarrier nosync
#include "sched/queue/timer_queue.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "sched/run/carrier.hpp"
#include "sched/run/cluster.hpp"
#include "support/both_worlds.hpp"
#include "support/conservation.hpp"
#include "support/one_processor.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"
#include "support/variant.hpp"
#include "ums/cluster.hpp"
#include "ums/condition_variable.hpp"
#include "ums/mutex.hpp"
#include "ums/run.hpp"
#include "ums/this_fiber.hpp"

namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using std::chrono::system_clock;
using ums::fiber;
using ums::wake_reason;
namespace this_fiber = ums::this_fiber;

class timer_queue_test : public conserving_test {};

// No deadline is pending on any processor of the cluster.
void expect_no_timers(ums::cluster& c) {
    ums::sched::cluster& all = *ums::sched::cluster_access::of(c);
    for (unsigned i = 0; i < all.size(); ++i)
        EXPECT_EQ(all.at(i).timers.next(), ums::os::never) << "processor " << i;
}

// Each dispatch puts its creator where those whose deadline had passed were before.
TEST_F(timer_queue_test, a_sleeper_comes_beside_a_tree_of_dispatched_fibers) {
    ums::run({.processors = 1, .time_slice_us = 0}, [] {
        const ums::fiber_options now{.launch = ums::launch::dispatch};
        std::atomic<int> sleeps = 0;
        fiber sleeper{[&] {
            for (int i = 0; i < 2; ++i) {
                this_fiber::sleep_for(1ms);
                ++sleeps;
            }
        }};
        while (sleeps == 0) this_fiber::yield();
        // Measured in leaves, not in time: some 20,000 fit into the second sleep.
        constexpr int most = 20'000'000;
        int leaves = 0;
        const auto grow = [&](auto& self, int depth) -> void {
            if (depth != 0) return fiber{now, [&] { self(self, depth - 1); }}.join();
            for (; sleeps < 2 && leaves < most; ++leaves) fiber{now, [] {}}.join();
        };
        grow(grow, 8);
        EXPECT_LT(leaves, most);
        sleeper.join();
    });
}

TEST_F(timer_queue_test, a_sleep_is_never_early) {
    const auto seed = test_seed();
    ums::run({.processors = 2}, [seed] {
        std::atomic<int> early = 0, woken = 0;
        std::vector<fiber> all;
        constexpr int many = scaled(2000, 300);
        for (int i = 0; i < many; ++i)
            all.emplace_back([&, i] {
                std::minstd_rand random{static_cast<unsigned>(seed) + static_cast<unsigned>(i)};
                for (int n = 0; n < 5; ++n) {
                    const auto d = std::chrono::nanoseconds{random() % 3'000'000};
                    const auto before = steady_clock::now();
                    if (n % 2 == 0)
                        this_fiber::sleep_for(d);
                    else
                        this_fiber::sleep_until(before + d);
                    early += steady_clock::now() < before + d;
                    ++woken;
                }
            });
        for (fiber& f : all) f.join();
        EXPECT_EQ(early, 0);
        EXPECT_EQ(woken, many * 5);
        expect_no_timers(ums::cluster::standard());
    });
}

TEST_F(timer_queue_test, every_clock_and_every_unit_works) {
    on_a_fiber_and_on_a_thread([] {
        const auto steady = steady_clock::now() + 2ms;
        this_fiber::sleep_until(steady);
        EXPECT_GE(steady_clock::now(), steady);

        const auto system = system_clock::now() + 2ms;
        this_fiber::sleep_until(system);
        EXPECT_GE(system_clock::now(), system);

        // Another representation of the same clock is not measured anew, because it is the same
        // deadline.
        const std::chrono::time_point<steady_clock, std::chrono::duration<std::uint64_t, std::nano>>
            unsigned_ticks{steady.time_since_epoch()};
        EXPECT_EQ(ums::deadline_at(unsigned_ticks), steady);
        EXPECT_EQ(ums::deadline_at(steady_clock::time_point::max()), ums::deadline::max());
        EXPECT_EQ(
            ums::deadline_at(std::chrono::time_point<steady_clock, std::chrono::hours>::max()),
            ums::deadline::max());
        EXPECT_EQ(
            ums::deadline_at(std::chrono::time_point<steady_clock, std::chrono::hours>::min()),
            ums::deadline::min());

        using fine = std::chrono::duration<double, std::pico>;
        const auto before = steady_clock::now();
        this_fiber::sleep_for(fine{2e9});
        EXPECT_GE(steady_clock::now() - before, 2ms);

        using coarse = std::chrono::time_point<steady_clock, std::chrono::duration<double>>;
        const coarse in_seconds = steady_clock::now() + std::chrono::duration<double>{0.002};
        this_fiber::sleep_until(in_seconds);
        EXPECT_GE(steady_clock::now(), in_seconds);
    });
}

// A clock that can be set: it is read again after each sleep.
struct slow_clock {
    using duration = std::chrono::milliseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<slow_clock>;
    static inline std::atomic<int> asked = 0;
    static time_point now() { return time_point{duration{asked++}}; }
};

TEST_F(timer_queue_test, a_clock_that_goes_otherwise_is_asked_again) {
    on_a_fiber_and_on_a_thread([] {
        slow_clock::asked = 0;
        this_fiber::sleep_until(slow_clock::time_point{5ms});
        EXPECT_EQ(slow_clock::asked, 6);
    });
}

// It stands still, before its epoch or after.
template <int Now>
struct standing_clock {
    using duration = std::chrono::milliseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<standing_clock>;
    static time_point now() { return time_point{duration{Now}}; }
};

// The first and the last time in units coarser than the clock's, where they would overflow in the
// clock's own.
template <class Clock, class Unit>
void expect_over_and_for_ever() {
    const auto first = std::chrono::time_point<Clock, Unit>::min();
    const auto last = std::chrono::time_point<Clock, Unit>::max();
    const ums::deadline over = ums::deadline_at(first);
    EXPECT_LE(over, steady_clock::now());
    EXPECT_GT(ums::deadline_at(last), steady_clock::now() + 24h * 365 * 100);

    this_fiber::sleep_until(first);
    ums::timed_mutex held;
    ums::mutex mutex;
    ums::condition_variable changed;
    std::atomic<int> have_timed_out = 0;
    std::atomic<bool> is_changed = false;
    held.lock();
    fiber locks{[&] {
        EXPECT_FALSE(held.try_lock_until(first));
        ++have_timed_out;
        EXPECT_TRUE(held.try_lock_until(last));
        held.unlock();
    }};
    fiber waits{[&] {
        std::unique_lock lock{mutex};
        EXPECT_EQ(changed.wait_until(lock, first), ums::cv_status::timeout);
        ++have_timed_out;
        while (!is_changed) ASSERT_EQ(changed.wait_until(lock, last), ums::cv_status::no_timeout);
    }};
    while (have_timed_out < 2) this_fiber::yield();
    for (int i = 0; i < 100; ++i) this_fiber::yield();
    held.unlock();
    locks.join();
    {
        const std::lock_guard lock{mutex};
        is_changed = true;
    }
    changed.notify_all();
    waits.join();
}

TEST_F(timer_queue_test, the_first_time_of_a_coarse_unit_is_over_and_the_last_is_for_ever) {
    on_a_fiber_and_on_a_thread([] {
        expect_over_and_for_ever<steady_clock, std::chrono::seconds>();
        expect_over_and_for_ever<steady_clock, std::chrono::hours>();
        expect_over_and_for_ever<system_clock, std::chrono::seconds>();
        expect_over_and_for_ever<system_clock, std::chrono::hours>();
        expect_over_and_for_ever<standing_clock<1000>, std::chrono::seconds>();
        expect_over_and_for_ever<standing_clock<-1000>, std::chrono::hours>();
        expect_over_and_for_ever<standing_clock<-1000>, std::chrono::duration<double>>();
        expect_over_and_for_ever<standing_clock<-1000>, std::chrono::milliseconds>();
    });
}

// The last times of its ticks, so a sleep for ever can end.
struct late_clock {
    using duration = std::chrono::milliseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<late_clock>;
    static inline std::atomic<int> asked = 0;
    static time_point now() { return time_point::max() - 3ms + duration{asked++}; }
};

TEST_F(timer_queue_test,
       a_sleep_until_the_last_time_of_a_coarse_unit_is_not_over_before_its_clock_is) {
    on_a_fiber_and_on_a_thread([] {
        late_clock::asked = 0;
        this_fiber::sleep_until(std::chrono::time_point<late_clock, std::chrono::hours>::max());
        EXPECT_EQ(late_clock::asked, 4);
    });
}

TEST_F(timer_queue_test, what_is_not_in_the_future_is_not_waited_for) {
    ums::run(one_processor, [] {
        std::atomic<bool> ran = false;
        fiber other{[&] { ran = true; }};  // It would run if this fiber stopped.
        this_fiber::sleep_for(0s);
        this_fiber::sleep_for(-1s);
        this_fiber::sleep_for(std::chrono::hours::min());
        this_fiber::sleep_until(steady_clock::now());
        this_fiber::sleep_until(steady_clock::time_point::min());
        this_fiber::sleep_until(system_clock::now() - 1h);
        this_fiber::sleep_until(system_clock::time_point::min());
        EXPECT_FALSE(ran);
        other.join();
    });
}

TEST_F(timer_queue_test, sleepers_of_one_processor_wake_in_the_order_of_their_deadlines) {
    const auto seed = test_seed();
    for (int attempt = 0;; ++attempt) {
        struct woken {
            steady_clock::time_point at;
            std::size_t turn;
        };
        constexpr std::size_t many = 200;
        std::vector<woken> order;
        std::mutex lock;
        steady_clock::time_point all_asleep, first;
        ums::run(one_processor, [&] {
            std::minstd_rand random{static_cast<unsigned>(seed)};
            const auto start = steady_clock::now() + (attempt + 1) * 20ms;
            std::vector<std::size_t> turns(many);
            for (std::size_t i = 0; i < many; ++i) turns[i] = i;
            std::shuffle(turns.begin(), turns.end(), random);
            first = start;
            std::vector<fiber> all;
            for (const std::size_t turn : turns)
                all.emplace_back([&order, &lock, start, turn] {
                    const auto at = start + turn * 10us;
                    this_fiber::sleep_until(at);
                    const std::lock_guard guard{lock};
                    order.push_back({at, turn});
                });
            this_fiber::yield();
            all_asleep = steady_clock::now();
            for (fiber& f : all) f.join();
        });
        ASSERT_EQ(order.size(), many);
        // If the first woke before the last slept, nothing can be seen, so try once more, with more
        // time.
        if (all_asleep >= first) continue;
        EXPECT_TRUE(std::is_sorted(order.begin(), order.end(),
                                   [](const woken& a, const woken& b) { return a.at < b.at; }));
        break;
    }
}

TEST_F(timer_queue_test, an_unpark_takes_the_deadline_back) {
    ums::run({.processors = 2}, [] {
        constexpr int rounds = scaled(50'000, 1000);
        std::atomic<int> unparked = 0;
        std::vector<fiber> all;
        for (int n = 0; n < 4; ++n)
            all.emplace_back([&] {
                for (int i = 0; i < rounds; ++i) {
                    fiber waker;
                    if (i % 4 != 0)
                        this_fiber::ref().unpark();
                    else
                        waker = fiber{[to = this_fiber::ref()] { to.unpark(); }};
                    unparked += this_fiber::park_for(1h) == wake_reason::unparked;
                    if (waker.joinable()) waker.join();
                }
            });
        for (fiber& f : all) f.join();
        EXPECT_EQ(unparked, 4 * rounds);
        expect_no_timers(ums::cluster::standard());
    });
}

// The deadline and its cancellation meet.
TEST_F(timer_queue_test, firing_and_cancelling_race) {
    const auto seed = test_seed();
    ums::run({.processors = 2}, [seed] {
        const int rounds = by_variant(scaled(10'000, 500), scaled(2'000, 500));
        std::atomic<int> unparked = 0, expired = 0, stale = 0;
        std::vector<fiber> all;
        for (unsigned n = 0; n < 4; ++n)
            all.emplace_back([&, n] {
                std::minstd_rand random{static_cast<unsigned>(seed) + n};
                for (int i = 0; i < rounds; ++i) {
                    const auto d = std::chrono::nanoseconds{random() % 2000};
                    fiber waker{[to = this_fiber::ref()] { to.unpark(); }};
                    if (this_fiber::park_for(d) == wake_reason::unparked)
                        ++unparked;
                    else
                        ++expired;
                    waker.join();
                    // The loser has left at most the unpark.
                    stale += this_fiber::park_for(0s) == wake_reason::unparked;
                    stale += this_fiber::park_for(0s) == wake_reason::unparked ? rounds : 0;
                }
            });
        for (fiber& f : all) f.join();
        EXPECT_EQ(unparked + expired, 4 * rounds);
        EXPECT_EQ(unparked + stale, 4 * rounds);
        expect_no_timers(ums::cluster::standard());
    });
}

// Late sleepers come first, but they must not keep all others from running.
TEST_F(timer_queue_test, sleepers_that_are_always_late_do_not_starve_those_that_yield) {
    ums::run({.processors = 1}, [] {
        std::atomic<bool> stop = false;
        std::vector<fiber> sleepers;
        for (int i = 0; i < 100; ++i)
            sleepers.emplace_back([&] {
                while (!stop) {
                    this_fiber::sleep_for(1us);
                    // Longer than the sleep, so that others have expired when it stops.
                    const auto until = steady_clock::now() + 20us;
                    while (!stop && steady_clock::now() < until) {
                    }
                }
            });
        fiber yields{[&] {
            for (int i = 0; i < scaled(200, 50); ++i) this_fiber::yield();
            stop = true;
        }};
        yields.join();
        for (fiber& f : sleepers) f.join();
    });
}

TEST_F(timer_queue_test, those_that_yield_do_not_starve_sleepers) {
    ums::run({.processors = 1}, [] {
        std::atomic<bool> stop = false;
        std::vector<fiber> all;
        for (int i = 0; i < 10; ++i)
            all.emplace_back([&] {
                while (!stop) this_fiber::yield();
            });
        for (int i = 0; i < 20; ++i) this_fiber::sleep_for(100us);
        stop = true;
        for (fiber& f : all) f.join();
    });
}

TEST_F(timer_queue_test, a_fiber_sleeps_inside_a_catch_block) {
    on_a_fiber_and_on_a_thread([] {
        try {
            throw 5;
        } catch (int) {
            this_fiber::sleep_for(10us);
            try {
                throw;
            } catch (int again) {
                EXPECT_EQ(again, 5);
            }
        }
    });
}

TEST_F(timer_queue_test, run_waits_for_detached_sleepers) {
    std::atomic<int> woken = 0;
    ums::run({.processors = 2}, [&] {
        for (int i = 0; i < 100; ++i)
            fiber{[&woken, i] {
                this_fiber::sleep_for(std::chrono::microseconds{100 * i});
                ++woken;
            }}.detach();
    });
    EXPECT_EQ(woken, 100);
}

// --- deadlines of a processor that cannot look after them itself ---

TEST_F(timer_queue_test, the_deadlines_of_a_removed_processor_still_pass) {
    // Without hand-offs a carrier always holds a processor.
    ums::run(one_processor, [] {
        for (int round = 0; round < scaled(20, 5); ++round) {
            ums::cluster c{{.processors = 3}};
            std::atomic<int> asleep = 0, woken = 0, elsewhere = 0;
            std::vector<fiber> all;
            constexpr int many = 60;
            for (int i = 0; i < many; ++i)
                all.emplace_back(ums::fiber_options{.cluster = &c}, [&, i] {
                    const unsigned on = ums::sched::this_carrier()->proc.get()->index();
                    ++asleep;
                    this_fiber::sleep_for(std::chrono::microseconds{1000 + 100 * i});
                    ++woken;
                    elsewhere += on != ums::sched::this_carrier()->proc.get()->index();
                });
            while (asleep < many) this_fiber::yield();
            c.remove_processor();
            c.remove_processor();
            for (fiber& f : all) f.join();
            EXPECT_EQ(woken, many);
            expect_no_timers(c);
        }
    });
}

TEST_F(timer_queue_test, deadlines_pass_while_processors_come_and_go) {
    ums::run({.processors = 1}, [] {
        ums::cluster c{{.processors = 2}};
        std::atomic<bool> stop = false;
        std::atomic<int> early = 0;
        std::vector<fiber> all;
        for (int i = 0; i < 20; ++i)
            all.emplace_back(ums::fiber_options{.cluster = &c}, [&, i] {
                while (!stop) {
                    const auto until = steady_clock::now() + std::chrono::microseconds{10 * i};
                    this_fiber::sleep_until(until);
                    early += steady_clock::now() < until;
                    this_fiber::yield();
                }
            });
        for (int i = 0; i < scaled(200, 30); ++i) {
            c.add_processor();
            this_fiber::sleep_for(50us);
            c.remove_processor();
        }
        stop = true;
        for (fiber& f : all) f.join();
        EXPECT_EQ(early, 0);
        expect_no_timers(c);
    });
}

}  // namespace
