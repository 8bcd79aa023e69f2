// SPDX-License-Identifier: MIT
// variants: migrate fifo p1 nomembarrier nosync
#include "ums/shared_mutex.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <random>
#include <stop_token>
#include <system_error>
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
#include "ums/jfiber.hpp"
#include "ums/run.hpp"
#include "ums/this_fiber.hpp"

namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using ums::fiber;
namespace this_fiber = ums::this_fiber;

[[maybe_unused]] constinit ums::shared_mutex static_shared_mutex;

class shared_mutex_base_test : public conserving_test {};

template <class Mutex>
class shared_mutex_test : public shared_mutex_base_test {};
using every_shared_mutex = ::testing::Types<ums::shared_mutex, ums::shared_timed_mutex>;
TYPED_TEST_SUITE(shared_mutex_test, every_shared_mutex);

// What another fiber gets by trying.
template <class Mutex>
bool another_can_write(Mutex& m) {
    bool got = false;
    fiber{[&] {
        got = m.try_lock();
        if (got) m.unlock();
    }}.join();
    return got;
}
template <class Mutex>
bool another_can_read(Mutex& m) {
    bool got = false;
    fiber{[&] {
        got = m.try_lock_shared();
        if (got) m.unlock_shared();
    }}.join();
    return got;
}

// A reader holds the mutex while others are started: once a try to read fails, a writer is queued.
template <class Mutex>
void until_a_writer_waits(Mutex& m) {
    while (another_can_read(m)) this_fiber::yield();
}

TYPED_TEST(shared_mutex_test, the_std_guards_work_with_it) {
    on_a_fiber_and_on_a_thread([] {
        TypeParam m;
        { const std::lock_guard guard{m}; }
        { const std::unique_lock guard{m, std::try_to_lock}; }
        {
            const ums::shared_lock one{m}, other{m, std::try_to_lock};
            EXPECT_TRUE(other.owns_lock());
            EXPECT_FALSE(another_can_write(m));
        }
        EXPECT_TRUE(another_can_write(m));
    });
}

TYPED_TEST(shared_mutex_test, readers_share_and_a_writer_excludes) {
    on_a_fiber_and_on_a_thread([] {
        TypeParam m;
        m.lock_shared();
        m.lock_shared();
        EXPECT_TRUE(another_can_read(m));
        EXPECT_FALSE(another_can_write(m));
        m.unlock_shared();
        EXPECT_FALSE(another_can_write(m));
        m.unlock_shared();
        m.lock();
        EXPECT_FALSE(another_can_read(m));
        EXPECT_FALSE(another_can_write(m));
        EXPECT_FALSE(m.try_lock());
        EXPECT_FALSE(m.try_lock_shared());
        m.unlock();
        EXPECT_TRUE(another_can_read(m));
        EXPECT_TRUE(another_can_write(m));
    });
}

// Counts without atomics, so a writer beside another or beside a reader would be noticed.
TYPED_TEST(shared_mutex_test, fibers_and_threads_exclude_each_other) {
    const auto seed = test_seed();
    ums::run({.processors = 2}, [seed] {
        constexpr int fibers = 24, threads = 3, rounds = scaled(1000, 100);
        TypeParam m;
        std::uint64_t first = 0, second = 0;
        std::atomic<std::uint64_t> writes = 0;
        auto work = [&](int n) {
            std::minstd_rand random{static_cast<unsigned>(seed + static_cast<unsigned>(n))};
            for (int i = 0; i < rounds; ++i) {
                const bool lingers = random() % 16 == 0;
                if (random() % 4 == 0) {
                    const std::lock_guard guard{m};
                    ++first;
                    if (lingers) this_fiber::yield();
                    ++second;
                    ++writes;
                } else {
                    const std::shared_lock guard{m};
                    const std::uint64_t seen = first;
                    if (lingers) this_fiber::yield();
                    EXPECT_EQ(seen, second);
                }
            }
        };
        on_threads_and_fibers(threads, fibers, work);
        EXPECT_EQ(first, writes);
        EXPECT_EQ(second, writes);
        EXPECT_TRUE(m.try_lock());
        m.unlock();
    });
}

TYPED_TEST(shared_mutex_test, a_reader_does_not_overtake_a_queued_writer) {
    on_a_fiber_and_on_a_thread([] {
        TypeParam m;
        std::atomic<bool> written = false;
        m.lock_shared();
        fiber writer{[&] {
            const std::lock_guard guard{m};
            written = true;
        }};
        until_a_writer_waits(m);
        fiber reader{[&] {
            const std::shared_lock guard{m};
            EXPECT_TRUE(written);
        }};
        EXPECT_FALSE(m.try_lock_shared());
        m.unlock_shared();
        reader.join();
        writer.join();
    });
}

// Each waits until all are inside, so they would wait for ever if they went in one by one.
TYPED_TEST(shared_mutex_test, the_readers_at_the_head_go_in_together) {
    on_a_fiber_and_on_a_thread([] {
        constexpr int readers = 20;
        TypeParam m;
        std::atomic<int> inside = 0;
        auto read = [&] {
            const std::shared_lock guard{m};
            ++inside;
            while (inside < readers) this_fiber::yield();
        };
        m.lock();
        std::vector<fiber> all;
        std::vector<plain_thread> plain;
        for (int i = 0; i < readers; ++i) {
            if (i % 5 == 0)
                plain.emplace_back(read);
            else
                all.emplace_back(read);
            this_fiber::yield();
        }
        m.unlock();
        for (fiber& f : all) f.join();
        for (plain_thread& t : plain) t.join();
    });
}

// Writers queue in turn, with a reader behind each: all go in in the order in which they came.
TEST_F(shared_mutex_base_test, goes_round_in_the_order_of_arrival) {
    ums::run(one_processor, [] {
        ums::shared_mutex m;
        std::vector<int> order;
        std::vector<fiber> all;
        constexpr int pairs = 50;
        m.lock();
        for (int i = 0; i < pairs; ++i) {
            all.emplace_back([&, i] {
                const std::lock_guard guard{m};
                order.push_back(2 * i);
            });
            this_fiber::yield();
            all.emplace_back([&, i] {
                const std::shared_lock guard{m};
                order.push_back(2 * i + 1);
            });
            this_fiber::yield();
        }
        m.unlock();
        for (fiber& f : all) f.join();
        ASSERT_EQ(order.size(), 2u * pairs);
        for (std::size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i], static_cast<int>(i));
    });
}

// Readers whose holds overlap without end keep no writer out, and writers no reader.
TYPED_TEST(shared_mutex_test, neither_side_starves) {
    ums::run({.processors = 2}, [] {
        constexpr int rounds = scaled(2000, 200);
        TypeParam m;
        std::atomic<bool> over = false;
        std::vector<fiber> crowd;
        for (int i = 0; i < 8; ++i)
            crowd.emplace_back([&] {
                while (!over) {
                    const std::shared_lock guard{m};
                    this_fiber::yield();
                }
            });
        for (int i = 0; i < rounds; ++i) const std::lock_guard guard{m};
        over = true;
        for (fiber& f : crowd) f.join();

        over = false;
        for (fiber& f : crowd)
            f = fiber{[&] {
                while (!over) {
                    const std::lock_guard guard{m};
                    this_fiber::yield();
                }
            }};
        for (int i = 0; i < rounds; ++i) const std::shared_lock guard{m};
        over = true;
        for (fiber& f : crowd) f.join();
    });
}

TYPED_TEST(shared_mutex_test, a_stop_ends_the_wait_and_a_free_lock_is_preferred) {
    on_a_fiber_and_on_a_thread([] {
        TypeParam m;
        std::stop_source stop;
        m.lock();
        fiber writer{[&] { EXPECT_FALSE(m.lock(stop.get_token())); }};
        fiber reader{[&] { EXPECT_FALSE(m.lock_shared(stop.get_token())); }};
        this_fiber::yield();
        stop.request_stop();
        writer.join();
        reader.join();
        m.unlock();
        EXPECT_TRUE(m.lock(stop.get_token()));
        m.unlock();
        EXPECT_TRUE(m.lock_shared(stop.get_token()));
        m.unlock_shared();
    });
}

// On one processor a yield lets each fiber that was started go as far as the queue.
TYPED_TEST(shared_mutex_test, a_writer_that_gives_up_lets_in_the_readers_behind_it) {
    ums::run(one_processor, [] {
        TypeParam m;
        std::stop_source stop;
        std::atomic<int> inside = 0;
        bool written = false;
        auto read = [&] {
            const std::shared_lock guard{m};
            ++inside;
            while (inside < 2) this_fiber::yield();
        };
        m.lock_shared();
        fiber hasty{[&] { EXPECT_FALSE(m.lock(stop.get_token())); }};
        this_fiber::yield();
        fiber one{read};
        this_fiber::yield();
        fiber other{read};
        this_fiber::yield();
        fiber patient{[&] {
            const std::lock_guard guard{m};
            EXPECT_EQ(inside, 3);
            written = true;
        }};
        this_fiber::yield();
        fiber last{[&] {
            const std::shared_lock guard{m};
            EXPECT_TRUE(written);
        }};
        this_fiber::yield();
        EXPECT_EQ(inside, 0);
        stop.request_stop();
        hasty.join();
        one.join();
        other.join();
        EXPECT_EQ(inside, 2);
        this_fiber::yield();
        EXPECT_FALSE(written);
        ++inside;
        m.unlock_shared();
        patient.join();
        last.join();
        EXPECT_TRUE(another_can_write(m));
    });
}

// The last waiter that gives up clears the flag: nothing may be left that looks like a waiter.
TYPED_TEST(shared_mutex_test, is_free_after_all_who_waited_have_given_up) {
    on_a_fiber_and_on_a_thread([] {
        for (const bool shared : {false, true}) {
            TypeParam m;
            std::stop_source stop;
            shared ? m.lock_shared() : m.lock();
            fiber one{[&] { EXPECT_FALSE(m.lock(stop.get_token())); }};
            fiber other{[&] { EXPECT_FALSE(m.lock(stop.get_token())); }};
            this_fiber::yield();
            stop.request_stop();
            one.join();
            other.join();
            EXPECT_EQ(another_can_read(m), shared);
            shared ? m.unlock_shared() : m.unlock();
            EXPECT_TRUE(another_can_write(m));
        }
    });
}

TYPED_TEST(shared_mutex_test, may_be_destroyed_right_after_the_last_unlock) {
    ums::run({.processors = 2}, [] {
        for (int i = 0; i < scaled(3000, 300); ++i) {
            auto* m = new TypeParam;
            const bool shared = i % 4 < 2;
            shared ? m->lock_shared() : m->lock();
            fiber last{[m, i] {
                if (i % 3 == 0) {
                    m->lock();
                    m->unlock();
                } else {
                    // Only after an exclusive hold by another, because the other reader could be
                    // last.
                    m->lock();
                    m->unlock();
                    m->lock_shared();
                    m->unlock_shared();
                }
                delete m;
            }};
            if (i % 2 == 0) this_fiber::yield();
            shared ? m->unlock_shared() : m->unlock();
            last.join();
        }
    });
}

TEST_F(shared_mutex_base_test, a_deadline_ends_the_wait_and_none_is_early) {
    on_a_fiber_and_on_a_thread([] {
        ums::shared_timed_mutex m;
        m.lock();
        fiber other{[&] {
            auto start = steady_clock::now();
            EXPECT_FALSE(m.try_lock_for(2ms));
            EXPECT_GE(steady_clock::now(), start + 2ms);
            start = steady_clock::now();
            EXPECT_FALSE(m.try_lock_shared_for(2ms));
            EXPECT_GE(steady_clock::now(), start + 2ms);
            EXPECT_FALSE(m.try_lock_until(start));
            EXPECT_FALSE(m.try_lock_shared_until(start));
            EXPECT_FALSE(m.try_lock_until(std::chrono::system_clock::now() + 1ms));
            EXPECT_FALSE(m.try_lock_shared_until(std::chrono::system_clock::now() + 1ms));
            EXPECT_FALSE(m.try_lock_shared_for(-1s));
        }};
        other.join();
        m.unlock();
        EXPECT_TRUE(m.try_lock_for(-1s));
        m.unlock();
        EXPECT_TRUE(m.try_lock_shared_until(steady_clock::time_point::min()));
        EXPECT_TRUE(m.try_lock_shared_for(1s));
        m.unlock_shared();
        m.unlock_shared();
    });
}

TEST_F(shared_mutex_base_test, deadlines_stops_and_unlocks_race) {
    const auto seed = test_seed();
    ums::run({.processors = 2}, [seed] {
        constexpr int rounds = scaled(1000, 100), workers = 16, threads = 2;
        ums::shared_timed_mutex m;
        std::uint64_t first = 0, second = 0;
        std::atomic<std::uint64_t> writes = 0, reads = 0, gave_up = 0;
        std::atomic<int> busy = workers + threads;
        ums::mutex of_stops;
        std::vector<std::stop_source> stops(workers + threads);
        auto work = [&](int n) {
            std::minstd_rand random{static_cast<unsigned>(seed + static_cast<unsigned>(n))};
            for (int i = 0; i < rounds; ++i) {
                const std::chrono::nanoseconds limit{random() % 20'000};
                const bool wants_stop = random() % 2 == 0;
                std::stop_token token;
                if (wants_stop) {
                    const std::lock_guard guard{of_stops};
                    std::stop_source& stop = stops[static_cast<std::size_t>(n)];
                    if (stop.stop_requested()) stop = std::stop_source{};
                    token = stop.get_token();
                }
                if (random() % 3 == 0) {
                    if (!(wants_stop ? m.lock(token) : m.try_lock_for(limit))) {
                        ++gave_up;
                        continue;
                    }
                    ++first;
                    if (random() % 4 == 0) this_fiber::yield();
                    ++second;
                    ++writes;
                    m.unlock();
                } else {
                    if (!(wants_stop ? m.lock_shared(token) : m.try_lock_shared_for(limit))) {
                        ++gave_up;
                        continue;
                    }
                    const std::uint64_t seen = first;
                    if (random() % 4 == 0) this_fiber::yield();
                    EXPECT_EQ(seen, second);
                    ++reads;
                    m.unlock_shared();
                }
            }
            --busy;
        };
        std::vector<fiber> all;
        std::vector<plain_thread> plain;
        for (int i = 0; i < threads; ++i) plain.emplace_back(work, workers + i);
        for (int i = 0; i < workers; ++i) all.emplace_back(work, i);
        all.emplace_back([&] {
            std::minstd_rand random{static_cast<unsigned>(seed)};
            while (busy != 0) {
                std::unique_lock lock{of_stops};
                std::stop_source stop = stops[random() % stops.size()];
                lock.unlock();
                stop.request_stop();
                this_fiber::yield();
            }
        });
        for (fiber& f : all) f.join();
        for (plain_thread& t : plain) t.join();
        EXPECT_EQ(first, writes);
        EXPECT_EQ(writes + reads + gave_up, std::uint64_t{workers + threads} * rounds);
        EXPECT_TRUE(m.try_lock());
        m.unlock();
    });
}

TYPED_TEST(shared_mutex_test, the_writer_who_locks_again_is_told) {
    on_a_fiber_and_on_a_thread([] {
        TypeParam m;
        const std::lock_guard guard{m};
        EXPECT_EQ(error_of([&] { m.lock(); }), std::errc::resource_deadlock_would_occur);
        EXPECT_EQ(error_of([&] { m.lock_shared(); }), std::errc::resource_deadlock_would_occur);
        EXPECT_EQ(error_of([&] { (void)m.lock(std::stop_token{}); }),
                  std::errc::resource_deadlock_would_occur);
        EXPECT_FALSE(m.try_lock());
        EXPECT_FALSE(m.try_lock_shared());
    });
}

const child_program misuse{"misuse", [](const child_arguments& which) {
                               ums::run({.processors = 1}, [&] {
                                   ums::shared_mutex m;
                                   if (which[0] == "free") m.unlock();
                                   if (which[0] == "shared_free") m.unlock_shared();
                                   if (which[0] == "readers") {
                                       m.lock_shared();
                                       m.unlock();
                                   }
                                   m.lock();
                                   if (which[0] == "shared_writer") m.unlock_shared();
                                   fiber{{.name = "thief"}, [&] { m.unlock(); }}.join();
                               });
                               return 0;
                           }};

TEST(shared_mutex_misuse_test, an_unlock_of_what_one_does_not_hold_ends_the_program) {
    auto expect = [](const char* which, const char* message) {
        const child_end end = run_child("misuse", {which});
        EXPECT_NE(end.code, 0);
        EXPECT_NE(end.err.find(message), end.err.npos) << end;
    };
    expect("free", "unlock() of a shared mutex that nobody holds");
    expect("readers", "unlock() of a shared mutex that readers hold");
    expect("thief", "unlock() of a shared mutex that another fiber or thread holds");
    expect("thief", "thief");
    expect("shared_free", "unlock_shared() of a shared mutex that no reader holds");
    expect("shared_writer", "unlock_shared() of a shared mutex that no reader holds");
}

}  // namespace
