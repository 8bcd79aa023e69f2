// SPDX-License-Identifier: MIT
#include "os/thread/placement.hpp"

#include <sched.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "os/cpu/topology.hpp"

namespace {

using namespace ums;

cpu_set_t mask_of_this_thread() {
    cpu_set_t now;
    EXPECT_EQ(::sched_getaffinity(0, sizeof now, &now), 0);
    return now;
}

void expect_mask_comes_back() {
    const cpu_set_t before = mask_of_this_thread();
    os::placement wakes;
    wakes.begin(::gettid(), os::nth_usable_cpu(0));
    const cpu_set_t narrow = mask_of_this_thread();
    EXPECT_EQ(CPU_COUNT(&narrow), 1);
    wakes.end();
    const cpu_set_t after = mask_of_this_thread();
    EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

TEST(placement_test, a_mask_comes_back_whether_or_not_it_was_asked_for) {
    std::thread{[] {
        expect_mask_comes_back();
        cpu_set_t some = mask_of_this_thread();
        if (CPU_COUNT(&some) < 3) GTEST_SKIP() << "no mask between one CPU and all";
        CPU_CLR(static_cast<unsigned>(os::nth_usable_cpu(1)), &some);
        ASSERT_EQ(::sched_setaffinity(0, sizeof some, &some), 0);
        expect_mask_comes_back();
    }}.join();
}

// To the kernel the number 0 is the calling thread.
TEST(placement_test, a_thread_that_has_not_begun_is_not_the_caller) {
    std::thread{[] {
        const cpu_set_t before = mask_of_this_thread();
        os::placement wakes;
        wakes.begin(0, os::nth_usable_cpu(0));
        const cpu_set_t now = mask_of_this_thread();
        EXPECT_TRUE(CPU_EQUAL(&before, &now));
        wakes.end();
    }}.join();
}

}  // namespace
