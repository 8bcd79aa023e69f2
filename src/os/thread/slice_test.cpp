// SPDX-License-Identifier: MIT
#include "os/thread/slice.hpp"

#include <pthread.h>
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

// In a child, because a process does not get its rights back.
TEST(slice_test, an_ordinary_user_may_still_change_the_threads_class) {
    const pid_t child = ::fork();
    if (child == 0) {
        if (::getuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) ::_exit(2);
        int failed = 0;
        on_a_thread([&failed] {
            (void)os::ask_for_slice(700'000);
            const sched_param none{};
            for (const int policy : {SCHED_OTHER, SCHED_BATCH, SCHED_OTHER})
                failed += ::pthread_setschedparam(::pthread_self(), policy, &none) != 0;
        });
        ::_exit(failed);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

TEST(slice_test, a_negative_nice_value_stays_and_is_inherited) {
    on_a_thread([] {
        if (::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), -3) != 0)
            GTEST_SKIP() << "not permitted";
        (void)os::ask_for_slice(500'000);
        EXPECT_EQ(::getpriority(PRIO_PROCESS, 0), -3);
        std::thread{[] { EXPECT_EQ(::getpriority(PRIO_PROCESS, 0), -3); }}.join();
    });
}

}  // namespace
