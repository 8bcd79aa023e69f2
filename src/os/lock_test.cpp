// SPDX-License-Identifier: MIT
#include "os/lock.hpp"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace {

using ums::os::lock;
using ums::os::lock_guard;

TEST(lock, can_be_taken_again_after_a_release) {
    lock l;
    for (int i = 0; i < 1'000; ++i) {
        l.acquire();
        l.release();
    }
    const lock_guard guard{l};
}

// The counters are plain: a second holder loses an increment, and ThreadSanitizer reports it.
TEST(lock, lets_one_thread_in_at_a_time_under_contention) {
    constexpr int threads = 4, rounds = 50'000;
    lock l;
    long total = 0;
    long inside = 0;
    long most_inside = 0;
    std::vector<std::thread> all;
    for (int t = 0; t < threads; ++t) {
        all.emplace_back([&] {
            for (int i = 0; i < rounds; ++i) {
                const lock_guard guard{l};
                ++inside;
                most_inside = std::max(most_inside, inside);
                ++total;
                --inside;
            }
        });
    }
    for (std::thread& t : all) t.join();
    EXPECT_EQ(total, long{threads} * rounds);
    EXPECT_EQ(most_inside, 1);
}

// The holder waits until the others are in the kernel's queue; none may be left there.
void wake_sleepers(bool has_membarrier) {
    static std::atomic<int> asleep;
    asleep = 0;
    auto table = ums::os::kernel_calls;
    table.futex_wait = [](const void* word, unsigned expected, const timespec* limit) noexcept {
        ++asleep;
        return ums::os::kernel_calls.futex_wait(word, expected, limit);
    };
    if (!has_membarrier) table.membarrier = [](int) noexcept { return long{-1}; };
    ums::os::system = table;
    constexpr int threads = 4;
    lock l;
    int entered = 0;
    l.acquire();
    std::vector<std::thread> all;
    for (int t = 0; t < threads; ++t) {
        all.emplace_back([&] {
            const lock_guard guard{l};
            ++entered;
        });
    }
    while (asleep.load() < threads) std::this_thread::yield();
    EXPECT_EQ(entered, 0);
    l.release();
    for (std::thread& t : all) t.join();
    EXPECT_EQ(entered, threads);
    ums::os::system = ums::os::kernel_calls;
}

TEST(lock, a_release_wakes_waiters_that_sleep_in_the_kernel) { wake_sleepers(true); }

TEST(lock, without_membarrier_sleepers_look_again) { wake_sleepers(false); }

TEST(lock, an_uncontended_one_makes_no_system_call) {
    static std::atomic<int> calls;
    calls = 0;
    auto table = ums::os::kernel_calls;
    table.futex_wait = [](const void*, unsigned, const timespec*) noexcept {
        return long{++calls};
    };
    table.futex_wake = [](const void*, int) noexcept { return long{++calls}; };
    ums::os::system = table;
    lock l;
    for (int i = 0; i < 100; ++i) const lock_guard guard{l};
    ums::os::system = ums::os::kernel_calls;
    EXPECT_EQ(calls.load(), 0);
}

}  // namespace
