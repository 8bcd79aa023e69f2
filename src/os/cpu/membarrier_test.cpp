// SPDX-License-Identifier: MIT
#include "os/cpu/membarrier.hpp"

#include <atomic>
#include <cerrno>
#include <linux/membarrier.h>
#include <sched.h>
#include <thread>

#include <gtest/gtest.h>

#include "base/atomic.hpp"
#include "internal/failing_calls.hpp"
#include "support/scale.hpp"

namespace {

using namespace ums;
using os::failing_calls;

// Lets two threads begin each round together, as nearly as spinning can.
class start_line {
public:
    // Sleeps after a while, because on a loaded machine each yield costs a turn of all the others
    // on the CPU.
    void wait(int round) {
        if (arrived_.fetch_add(1) + 1 == 2 * (round + 1)) return arrived_.notify_all();
        for (int spins = 0;; ++spins) {
            const int seen = arrived_.load();
            if (seen >= 2 * (round + 1)) return;
            if (spins > 1000) arrived_.wait(seen);
        }
    }

private:
    std::atomic<int> arrived_{0};
};

// Runs Dekker's store and load on both sides, many times. Returns the number of rounds in which
// neither saw the other's store.
int rounds_in_which_both_missed(int rounds) {
    struct flag {
        alignas(64) base::atomic<int> raised;
    };
    static flag light, heavy;
    light.raised.store(-1, base::relaxed);
    heavy.raised.store(-1, base::relaxed);
    start_line begin, end, counted;
    int light_saw = 0, heavy_saw = 0, missed = 0;
    std::thread light_side{[&] {
        const bool fence_is_free = os::asymmetric();
        for (int round = 0; round < rounds; ++round) {
            begin.wait(round);
            light.raised.store(round, base::relaxed);
            if (fence_is_free)
                base::compiler_fence();
            else
                base::full_fence();
            light_saw = heavy.raised.load(base::relaxed);
            end.wait(round);
            counted.wait(round);
        }
    }};
    for (int round = 0; round < rounds; ++round) {
        begin.wait(round);
        heavy.raised.store(round, base::relaxed);
        os::heavy_fence();
        heavy_saw = light.raised.load(base::relaxed);
        end.wait(round);
        missed += light_saw != round && heavy_saw != round;
        counted.wait(round);
    }
    light_side.join();
    return missed;
}

// --- before any light side relies on it, so these two tests come first ---

TEST(membarrier, without_it_two_full_fences_do) {
    EXPECT_FALSE(os::enable_asymmetric_fence(false));
    EXPECT_FALSE(os::asymmetric());
    failing_calls calls;
    EXPECT_EQ(rounds_in_which_both_missed(5'000), 0);
    EXPECT_EQ(calls.made(failing_calls::membarrier), 0u);
}

TEST(membarrier, a_kernel_that_refuses_it_is_taken_at_its_word) {
    for (const int error : {ENOSYS, EPERM, EINVAL}) {
        failing_calls calls;
        calls.fail(failing_calls::membarrier, 1, ~std::uint64_t{0}, error);
        EXPECT_FALSE(os::enable_asymmetric_fence(true));
        EXPECT_FALSE(os::asymmetric());
        EXPECT_EQ(calls.made(failing_calls::membarrier), 1u);
        os::heavy_fence();
        EXPECT_EQ(calls.made(failing_calls::membarrier), 1u);
    }
}

// --- and after that ---

TEST(membarrier, the_light_side_needs_no_fence_of_its_own) {
    if (!os::enable_asymmetric_fence(true)) GTEST_SKIP() << "the kernel refuses membarrier";
    EXPECT_TRUE(os::asymmetric());
    EXPECT_EQ(rounds_in_which_both_missed(5'000), 0);
}

TEST(membarrier, enabling_it_twice_is_harmless) {
    EXPECT_EQ(os::enable_asymmetric_fence(true), os::enable_asymmetric_fence(true));
}

// As with the seats of the UMS API, when a runtime starts that is to do without membarrier.
TEST(membarrier, light_sides_made_before_it_was_forbidden_are_still_fenced) {
    if (!os::enable_asymmetric_fence(true)) GTEST_SKIP() << "the kernel refuses membarrier";
    failing_calls calls;
    EXPECT_FALSE(os::enable_asymmetric_fence(false));
    EXPECT_FALSE(os::asymmetric());
    os::heavy_fence();
    EXPECT_EQ(calls.made(failing_calls::membarrier), 1u);
}

TEST(membarrier, a_registration_that_was_lost_is_made_again) {
    if (!os::enable_asymmetric_fence(true)) GTEST_SKIP() << "the kernel refuses membarrier";
    failing_calls calls;
    calls.fail(failing_calls::membarrier, 1, 1, EPERM);
    os::heavy_fence();
    EXPECT_EQ(calls.made(failing_calls::membarrier), 3u);
}

TEST(membarrier, the_fence_holds_where_it_is_refused_later) {
    if (!os::enable_asymmetric_fence(true)) GTEST_SKIP() << "the kernel refuses membarrier";
    cpu_set_t before, after;
    ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
    for (const int error : {ENOMEM, EPERM, ENOSYS}) {
        failing_calls calls;
        calls.fail(failing_calls::membarrier, 1, ~std::uint64_t{0}, error);
        EXPECT_TRUE(os::asymmetric());
        errno = 7;
        os::heavy_fence();
        EXPECT_EQ(errno, 7);
        EXPECT_EQ(rounds_in_which_both_missed(scaled(50, 10)), 0);
    }
    ASSERT_EQ(::sched_getaffinity(0, sizeof after, &after), 0);
    EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

}  // namespace
