// SPDX-License-Identifier: MIT
#include "os/slice.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <thread>

#include <gtest/gtest.h>

namespace {

using namespace ums;

template <class F>
void on_a_thread(F f) {
    std::thread{f}.join();
}

TEST(slice_test, a_thread_gets_the_slice_it_asks_for_and_nothing_else_changes) {
    on_a_thread([] {
        const int policy = ::sched_getscheduler(0), nice = ::getpriority(PRIO_PROCESS, 0);
        const os::nanoseconds before = os::asked_slice();
        const bool can = os::ask_for_slice(500'000);
        EXPECT_EQ(os::asked_slice(), can ? 500'000 : before);
        EXPECT_EQ(::sched_getscheduler(0), policy);
        EXPECT_EQ(::getpriority(PRIO_PROCESS, 0), nice);
        if (can) {
            EXPECT_TRUE(os::ask_for_slice(700'000));
            EXPECT_EQ(os::asked_slice(), 700'000);
        }
    });
}

TEST(slice_test, a_nice_thread_and_a_batch_one_stay_what_they_are) {
    on_a_thread([] {
        ASSERT_EQ(::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), 7), 0);
        const sched_param none{};
        ASSERT_EQ(::sched_setscheduler(0, SCHED_BATCH, &none), 0);
        (void)os::ask_for_slice(500'000);
        EXPECT_EQ(::sched_getscheduler(0), SCHED_BATCH);
        EXPECT_EQ(::getpriority(PRIO_PROCESS, 0), 7);
    });
}

TEST(slice_test, a_thread_with_a_policy_of_its_own_is_left_alone) {
    on_a_thread([] {
        const sched_param none{};
        ASSERT_EQ(::sched_setscheduler(0, SCHED_IDLE, &none), 0);
        EXPECT_FALSE(os::ask_for_slice(500'000));
        EXPECT_EQ(::sched_getscheduler(0), SCHED_IDLE);
    });
}

}  // namespace
