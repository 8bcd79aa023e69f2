// SPDX-License-Identifier: MIT
// variants: migrate fifo nomembarrier nosync

// Timed waits that race with what ends them: none is woken without a cause, and nothing is lost
// that was sent to a waiter that gave up. Four kinds share the waits; TEST_WAITS=10000000 sets how
// many there are, and without it this is a short program.

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <iostream>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/conservation.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"
#include "ums/channel.hpp"
#include "ums/fiber.hpp"
#include "ums/mutex.hpp"
#include "ums/run.hpp"
#include "ums/semaphore.hpp"
#include "ums/this_fiber.hpp"

namespace {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;
using ums::fiber;
namespace this_fiber = ums::this_fiber;

using generator = std::minstd_rand;

constexpr std::size_t waiters = 64, wakers = 4, kinds = 4;

class timed_waits_test : public conserving_test, public ::testing::WithParamInterface<unsigned> {
public:
    timed_waits_test()
        : each_{(static_cast<std::uint64_t>(
                     sized("TEST_WAITS", is_scattered() ? 20'000 : 400'000, 20'000)) +
                 kinds * waiters - 1) /
                (kinds * waiters)},
          longest_ns_{is_scattered() && GetParam() > 1 ? 200'000u
                                                       : unsigned{scaled(4000, 20'000)}} {}

protected:
    using wait_function = std::function<bool(std::size_t, generator&)>;
    using wake_function = std::function<void(generator&)>;

    std::uint64_t waits_each() const { return each_; }

    // About as long as it takes until a waiter is woken; one in eight gives up at once, so that
    // some do however fast the wakers are.
    nanoseconds some_time(generator& random) const {
        return nanoseconds{random() % 8 == 0 ? 0 : random() % longest_ns_};
    }

    // Each waiter calls wait() with its number, which returns whether it was woken; when no waker
    // is left it calls after() with its number. Wakers call wake() until all have waited.
    void race(const char* kind, const wait_function& wait, const wake_function& wake,
              const std::function<void(std::size_t)>& after) {
        const std::uint64_t seed = test_seed();
        const auto start = steady_clock::now();
        std::atomic<std::uint64_t> woken = 0;
        std::atomic<std::size_t> waiting = waiters, waking = wake ? wakers : 0;
        ums::run({.processors = GetParam(), .seed = seed}, [&] {
            std::vector<fiber> all;
            for (std::size_t n = 0; n < waiters; ++n)
                all.emplace_back([&, n] {
                    generator random{static_cast<generator::result_type>(seed + n)};
                    std::uint64_t own = 0;
                    for (std::uint64_t i = 0; i < each_; ++i) own += wait(n, random);
                    woken += own;
                    --waiting;
                    while (waiting != 0 || waking != 0) this_fiber::yield();
                    if (after) after(n);
                });
            if (wake)
                for (std::size_t n = 0; n < wakers; ++n)
                    all.emplace_back([&, n] {
                        generator random{static_cast<generator::result_type>(~seed + n)};
                        while (waiting != 0) {
                            wake(random);
                            if (random() % 4 == 0) this_fiber::yield();
                        }
                        --waking;
                    });
            for (fiber& f : all) f.join();
        });
        const std::uint64_t waits = each_ * waiters, w = woken;
        const std::chrono::duration<double> took = steady_clock::now() - start;
        std::cout << kind << ", processors " << GetParam() << ": " << waits << " timed waits in "
                  << took.count() << " s, " << w << " woken, " << waits - w << " timed out\n";
        // Otherwise nothing has raced.
        EXPECT_GT(w, 0u);
        EXPECT_GT(waits - w, 0u);
    }

private:
    const std::uint64_t each_;
    const unsigned longest_ns_;
};

// Each waiter has at most one unpark under way, so those it got and the one that it finds
// remembered at the end are exactly those that were sent.
TEST_P(timed_waits_test, parks_lose_no_unpark) {
    struct one {
        std::atomic<bool> is_ready = false, is_under_way = false;
        std::atomic<std::uint64_t> sent = 0;
        ums::fiber_ref ref;
        std::uint64_t got = 0, wrong = 0;
    };
    std::array<one, waiters> all;
    race(
        "park",
        [&](std::size_t n, generator& random) {
            one& w = all[n];
            if (!w.is_ready) {
                w.ref = this_fiber::ref();
                w.is_ready = true;
            }
            const auto limit = steady_clock::now() + some_time(random);
            if (this_fiber::park_until(limit) != ums::wake_reason::unparked) {
                w.wrong += steady_clock::now() < limit;
                return false;
            }
            w.wrong += !w.is_under_way.exchange(false);
            ++w.got;
            return true;
        },
        [&](generator& random) {
            one& w = all[random() % waiters];
            if (!w.is_ready || w.is_under_way.exchange(true)) return;
            ++w.sent;
            w.ref.unpark();
        },
        [&](std::size_t n) {
            while (this_fiber::park_until(steady_clock::time_point{}) ==
                   ums::wake_reason::unparked) {
                all[n].wrong += !all[n].is_under_way.exchange(false);
                ++all[n].got;
            }
        });
    for (const one& w : all) {
        EXPECT_EQ(w.wrong, 0u);
        EXPECT_EQ(w.got, w.sent);
    }
}

TEST_P(timed_waits_test, semaphores_lose_and_make_up_no_permit) {
    ums::counting_semaphore<> permits{0};
    std::atomic<std::uint64_t> sent = 0, taken = 0;
    race(
        "semaphore",
        [&](std::size_t, generator& random) {
            if (!permits.try_acquire_for(some_time(random))) return false;
            ++taken;
            return true;
        },
        [&](generator&) {
            if (sent - taken >= waiters / 4) return;
            ++sent;
            permits.release();
        },
        {});
    std::uint64_t left = 0;
    while (permits.try_acquire()) ++left;
    EXPECT_EQ(taken + left, sent);
}

// Both sides give up: what was sent is received once, what was not sent never.
TEST_P(timed_waits_test, channels_deliver_what_was_sent_and_nothing_else) {
    ums::channel<std::uint64_t> c;
    std::vector<char> sent(waiters * waits_each());
    std::vector<std::atomic<char>> received(sent.size());
    std::array<std::uint64_t, waiters> next = {};
    race("channel",
         [&](std::size_t n, generator& random) {
             if (random() % 2 == 0) {
                 std::uint64_t item = 0;
                 if (const auto got = c.receive_for(some_time(random)))
                     item = *got;
                 else
                     return false;
                 ++received.at(item);
                 return true;
             }
             const std::uint64_t item = n * waits_each() + next[n]++;
             const bool is_sent = c.send_for(item, some_time(random)) == ums::channel_status::ok;
             sent[item] = is_sent;
             return is_sent;
         },
         {}, {});
    std::uint64_t wrong = 0;
    for (std::size_t i = 0; i < sent.size(); ++i) wrong += sent[i] != received[i];
    EXPECT_EQ(wrong, 0u);
}

// A hand-over to a waiter that gives up would leave the mutex without an owner, and the others
// would find it taken for ever.
TEST_P(timed_waits_test, a_mutex_is_handed_to_nobody_who_gave_up) {
    ums::fair_mutex m;
    std::uint64_t inside = 0, count = 0, wrong = 0;
    std::atomic<std::uint64_t> taken = 0;
    race("fair mutex",
         [&](std::size_t, generator& random) {
             if (!m.try_lock_for(10 * some_time(random))) return false;
             wrong += inside++ != 0;
             ++count;
             if (random() % 8 == 0) this_fiber::yield();
             wrong += --inside != 0;
             m.unlock();
             ++taken;
             return true;
         },
         {}, {});
    EXPECT_EQ(wrong, 0u);
    EXPECT_EQ(count, taken);
    EXPECT_TRUE(m.try_lock());
    m.unlock();
}

INSTANTIATE_TEST_SUITE_P(processors, timed_waits_test, ::testing::Values(1u, 2u));

}  // namespace
