// SPDX-License-Identifier: MIT
#include "os/thread/slice.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

namespace {

using namespace ums;

int policy_of_this_thread() { return ::sched_getscheduler(0) & ~SCHED_RESET_ON_FORK; }

template <class F>
void on_a_thread(F f) {
    std::thread{f}.join();
}

TEST(slice_test, a_thread_gets_the_slice_it_asks_for_and_nothing_else_changes) {
    on_a_thread([] {
        const int policy = policy_of_this_thread(), nice = ::getpriority(PRIO_PROCESS, 0);
        const os::nanoseconds before = os::asked_slice();
        const bool can = os::ask_for_slice(500'000);
        EXPECT_EQ(os::asked_slice(), can ? 500'000 : before);
        EXPECT_EQ(policy_of_this_thread(), policy);
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
        EXPECT_EQ(policy_of_this_thread(), SCHED_BATCH);
        EXPECT_EQ(::getpriority(PRIO_PROCESS, 0), 7);
    });
}

TEST(slice_test, a_thread_with_a_policy_of_its_own_is_left_alone) {
    on_a_thread([] {
        const sched_param none{};
        ASSERT_EQ(::sched_setscheduler(0, SCHED_IDLE, &none), 0);
        EXPECT_FALSE(os::ask_for_slice(500'000));
        EXPECT_EQ(policy_of_this_thread(), SCHED_IDLE);
    });
}

TEST(slice_test, threads_and_processes_of_a_thread_with_a_slice_begin_with_the_kernels_own) {
    on_a_thread([] {
        const os::nanoseconds before = os::asked_slice();
        if (!os::ask_for_slice(700'000)) GTEST_SKIP() << "the kernel knows no such slices";
        std::thread{[before] { EXPECT_EQ(os::asked_slice(), before); }}.join();
        const pid_t child = ::fork();
        if (child == 0) ::_exit(os::asked_slice() == before ? 0 : 1);
        int status = -1;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
    });
}

// The thread asks for no slice: a child, which must not inherit it, would lose the nice value.
TEST(slice_test, a_negative_nice_value_is_worth_more_than_a_slice) {
    on_a_thread([] {
        if (::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), -3) != 0)
            GTEST_SKIP() << "not permitted";
        EXPECT_FALSE(os::ask_for_slice(500'000));
        std::thread{[] { EXPECT_EQ(::getpriority(PRIO_PROCESS, 0), -3); }}.join();
    });
}

}  // namespace
