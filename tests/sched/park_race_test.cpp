// SPDX-License-Identifier: MIT
// variants: migrate fifo p1 nomembarrier nosync
//
// Wake-up, deadline and stop race for the same park, at random, and no wake-up is lost or invented:
// each waiter has at most one unpark outstanding, so those it got and the one it finds remembered
// at the end must be exactly those that were sent. TEST_ROUNDS sets how often each waiter parks.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <stop_token>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/conservation.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"
#include "ums/run.hpp"
#include "ums/this_fiber.hpp"

namespace {

using ums::deadline;
using ums::fiber;
using ums::fiber_ref;
using ums::wake_reason;
namespace this_fiber = ums::this_fiber;

class park_race_test : public conserving_test {};

using generator = std::minstd_rand;

struct waiter {
    std::atomic<bool> is_outstanding = false;
    std::atomic<std::uint64_t> sent = 0;
    std::atomic<bool> is_ready = false;  // `ref` is valid.
    std::atomic<bool> is_done = false;
    fiber_ref ref;

    std::mutex lock;  // Never held across a park.
    std::stop_source stop;

    // Owned by the waiter itself:
    std::uint64_t got = 0, remembered = 0, by_deadline = 0, by_stop = 0, wrong = 0;

    void run(std::uint64_t seed, int rounds) {
        generator random{static_cast<generator::result_type>(seed)};
        ref = this_fiber::ref();
        is_ready = true;
        for (int i = 0; i < rounds; ++i) {
            std::stop_token token;
            {
                const std::lock_guard guard{lock};
                if (stop.stop_requested()) stop = {};
                token = stop.get_token();
            }
            const auto limit = std::chrono::steady_clock::now() +
                               std::chrono::nanoseconds{random() % 20'000} -
                               std::chrono::nanoseconds{2000};
            wake_reason why = wake_reason::unparked;
            switch (random() % 4) {
                case 0:
                    why = this_fiber::park(token);
                    break;
                case 1:
                    why = this_fiber::park_until(limit);
                    break;
                case 2:
                    why = this_fiber::park_until(limit, token);
                    break;
                case 3:
                    why = this_fiber::park_until(deadline::max(), token);
                    break;
            }
            switch (why) {
                case wake_reason::unparked:
                    ++got;
                    wrong += !is_outstanding.exchange(false);
                    break;
                case wake_reason::deadline_passed:
                    ++by_deadline;
                    wrong += std::chrono::steady_clock::now() < limit;
                    break;
                case wake_reason::stopped:
                    ++by_stop;
                    wrong += !token.stop_requested();
                    break;
            }
        }
        is_done = true;
    }

    // Call after the last waker has gone.
    void settle() {
        const deadline past = std::chrono::steady_clock::now() - std::chrono::seconds{1};
        while (this_fiber::park_until(past) == wake_reason::unparked) ++remembered;
    }

    void wake() {
        if (!is_ready || is_outstanding.exchange(true)) return;
        ++sent;
        ref.unpark();
    }
    void request_stop() {
        std::unique_lock guard{lock};
        std::stop_source source = stop;
        guard.unlock();
        source.request_stop();
    }
};

void race(std::uint64_t seed, unsigned processors, int waiting_fibers, int waiting_threads,
          int waking_fibers, int waking_threads, int rounds) {
    ums::runtime started{{.processors = processors, .seed = seed}};
    std::vector<std::unique_ptr<waiter>> waiters;
    for (int i = 0; i < waiting_fibers + waiting_threads; ++i)
        waiters.push_back(std::make_unique<waiter>());
    std::atomic<bool> wakers_are_gone = false;
    std::atomic<std::size_t> done = 0;

    auto wait = [&](std::size_t i) {
        waiters[i]->run(seed + i + 1, rounds);
        ++done;
        while (!wakers_are_gone) this_fiber::yield();
        waiters[i]->settle();
    };
    auto wake = [&](std::size_t i) {
        generator random{static_cast<generator::result_type>(seed * 31 + i + 1)};
        while (done < waiters.size()) {
            waiter& w = *waiters[random() % waiters.size()];
            if (random() % 3 != 0)
                w.wake();
            else
                w.request_stop();
            if (random() % 4 == 0) this_fiber::yield();
        }
    };

    std::vector<fiber> sleepers, wakers;
    std::vector<std::thread> threads, waking;
    for (int i = 0; i < waiting_fibers; ++i)
        sleepers.emplace_back(wait, static_cast<std::size_t>(i));
    for (int i = 0; i < waiting_threads; ++i)
        threads.emplace_back(wait, static_cast<std::size_t>(waiting_fibers + i));
    for (int i = 0; i < waking_fibers; ++i) wakers.emplace_back(wake, static_cast<std::size_t>(i));
    for (int i = 0; i < waking_threads; ++i)
        waking.emplace_back(wake, static_cast<std::size_t>(waking_fibers + i));
    for (fiber& f : wakers) f.join();
    for (std::thread& t : waking) t.join();
    wakers_are_gone = true;
    for (fiber& f : sleepers) f.join();
    for (std::thread& t : threads) t.join();

    std::uint64_t got = 0, by_deadline = 0, by_stop = 0;
    for (const auto& w : waiters) {
        EXPECT_EQ(w->wrong, 0u);
        EXPECT_EQ(w->got + w->remembered, w->sent);
        EXPECT_LE(w->remembered, 1u);
        got += w->got;
        by_deadline += w->by_deadline;
        by_stop += w->by_stop;
    }
    // Otherwise the test would have tested nothing.
    EXPECT_GT(got, 0u);
    EXPECT_GT(by_deadline, 0u);
    EXPECT_GT(by_stop, 0u);
    EXPECT_EQ(got + by_deadline + by_stop, static_cast<std::uint64_t>(rounds) * waiters.size());
}

// How often each waiter parks. With more busy carriers than CPUs, a fiber that each park moves
// often waits for a time slice.
int rounds(int ordinary, int sanitized, int oversubscribed_and_scattered) {
    return is_scattered() && !under_tsan && !under_asan
               ? sized("TEST_ROUNDS", oversubscribed_and_scattered, 0)
               : sized("TEST_ROUNDS", ordinary, sanitized);
}

TEST_F(park_race_test, on_one_processor) {
    race(test_seed(), 1, 16, 0, 4, 0, rounds(32'000, 500, 32'000));
}

TEST_F(park_race_test, on_two_processors) {
    race(test_seed(), 2, 16, 0, 4, 0, rounds(32'000, 500, 4000));
}

TEST_F(park_race_test, on_four_processors) {
    race(test_seed(), 4, 16, 0, 4, 0, rounds(10'000, 500, 300));
}

TEST_F(park_race_test, with_threads_that_wake) {
    race(test_seed(), 2, 8, 0, 1, 2, rounds(10'000, 300, 500));
}

TEST_F(park_race_test, with_threads_that_wait) {
    race(test_seed(), 2, 4, 4, 2, 1, rounds(5000, 200, 1000));
}

}  // namespace
