// SPDX-License-Identifier: MIT
#include "os/membarrier.hpp"

#include <atomic>
#include <linux/membarrier.h>
#include <thread>

#include <gtest/gtest.h>

#include "base/atomic.hpp"
#include "os/failing_calls.hpp"

namespace {

using namespace ums;
using os::failing_calls;

// Lets two threads begin each round together, as nearly as spinning can.
class start_line {
public:
    void wait(int round) {
        arrived_.fetch_add(1);
        while (arrived_.load() < 2 * (round + 1)) std::this_thread::yield();
    }

private:
    std::atomic<int> arrived_{0};
};

// Dekker's store and load on both sides, many times: rounds in which neither saw the other's store.
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

TEST(membarrier, the_light_side_needs_no_fence_of_its_own) {
    if (!os::enable_asymmetric_fence(true)) GTEST_SKIP() << "the kernel refuses membarrier";
    EXPECT_TRUE(os::asymmetric());
    EXPECT_EQ(rounds_in_which_both_missed(5'000), 0);
}

TEST(membarrier, enabling_it_twice_is_harmless) {
    EXPECT_EQ(os::enable_asymmetric_fence(true), os::enable_asymmetric_fence(true));
}

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
    os::enable_asymmetric_fence(true);
}

}  // namespace
