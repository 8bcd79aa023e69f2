// SPDX-License-Identifier: MIT
#include "os/futex.hpp"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace {

using namespace ums::os;
using word = ums::base::atomic<std::uint32_t>;

TEST(futex, a_wait_for_another_value_returns_at_once) {
    const word w{1};
    EXPECT_TRUE(futex_wait(w, 0));
    EXPECT_TRUE(futex_wait(w, 0, now() + 3'600'000'000'000));
}

TEST(futex, a_wait_ends_when_its_limit_has_passed_and_not_before) {
    const word w{0};
    EXPECT_FALSE(futex_wait(w, 0, 0));
    EXPECT_FALSE(futex_wait(w, 0, -1));
    EXPECT_FALSE(futex_wait(w, 0, now() - 1));
    const nanoseconds limit = now() + 2'000'000;
    while (futex_wait(w, 0, limit)) {
    }
    EXPECT_GE(now(), limit);
}

TEST(futex, a_wake_ends_a_wait) {
    word turn{0};
    // Two threads take turns: each waits for its number.
    auto play = [&turn](std::uint32_t mine) {
        for (std::uint32_t round = 0; round < 2'000; ++round) {
            const std::uint32_t wanted = round * 2 + mine;
            for (;;) {
                const std::uint32_t seen = turn.load(ums::base::acquire);
                if (seen == wanted) break;
                futex_wait(turn, seen);
            }
            turn.store(wanted + 1, ums::base::release);
            futex_wake(turn.address());
        }
    };
    std::thread other{play, 1};
    play(0);
    other.join();
    EXPECT_EQ(turn.load(ums::base::relaxed), 4'000u);
}

TEST(futex, a_wake_may_end_several_waits) {
    constexpr int threads = 4;
    word open{0};
    std::vector<std::thread> all;
    for (int i = 0; i < threads; ++i) {
        all.emplace_back([&open] {
            while (open.load(ums::base::acquire) == 0) futex_wait(open, 0);
        });
    }
    open.store(1, ums::base::release);
    futex_wake(open.address(), threads);
    for (std::thread& t : all) t.join();
}

TEST(futex, the_table_reports_errors_as_negative_numbers_and_keeps_errno) {
    const word w{1};
    errno = 12345;
    EXPECT_EQ(ums::os::system.futex_wait(w.address(), 0, nullptr), -EAGAIN);
    EXPECT_EQ(ums::os::system.munmap(reinterpret_cast<void*>(1), 1), -EINVAL);
    EXPECT_EQ(ums::os::system.madvise(nullptr, 4096, -1), -EINVAL);
    EXPECT_EQ(ums::os::system.membarrier(-1), -EINVAL);
    EXPECT_EQ(ums::os::system.futex_wake(w.address(), 1), 0);
    EXPECT_EQ(errno, 12345);
}

TEST(clock, never_goes_back_and_agrees_with_the_steady_clock) {
    nanoseconds last = now();
    for (int i = 0; i < 10'000; ++i) {
        const nanoseconds between = to_nanoseconds(std::chrono::steady_clock::now());
        const nanoseconds next = now();
        ASSERT_LE(last, between);
        ASSERT_LE(between, next);
        last = next;
    }
    EXPECT_EQ(to_nanoseconds(std::chrono::steady_clock::time_point::max()), never);
}

TEST(clock, what_was_before_the_clock_began_is_its_beginning) {
    EXPECT_EQ(to_nanoseconds(std::chrono::steady_clock::time_point::min()), 0);
    EXPECT_EQ(to_nanoseconds(std::chrono::steady_clock::time_point{}), 0);
}

}  // namespace
