// SPDX-License-Identifier: MIT
#include "os/thread/alarm.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <gtest/gtest.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "internal/failing_calls.hpp"
#include "support/conservation.hpp"

namespace {

using namespace ums;

class alarm_test : public conserving_test, public testing::WithParamInterface<int> {
protected:
    // With a timer; where the kernel refuses that; and where it refuses to arm it or to wait.
    alarm_test() {
        using f = os::failing_calls;
        if (GetParam() == 1) failing_.fail(f::thread_timer_create, 1, 1, EAGAIN);
        if (GetParam() == 2) failing_.fail(f::signal_block, 1, 1, EPERM);
        if (GetParam() == 3) failing_.fail(f::thread_timer_arm, 1, ~std::uint64_t{0}, EPERM);
        if (GetParam() == 4) failing_.fail(f::signal_wait, 2, ~std::uint64_t{0}, EPERM);
    }
    // Sleeps until it is woken `rounds` times.
    void start(int rounds) {
        sleeper_ = std::thread{[this, rounds] {
            alarm.begin();
            ready = true;
            for (int i = 0; i < rounds; ++i) {
                while (due == i) alarm.sleep();
                ++woken;
            }
        }};
        while (!ready) std::this_thread::yield();
    }
    void end() {
        sleeper_.join();
        alarm.end();
    }

    os::alarm alarm;
    std::atomic<int> due{0}, woken{0};
    std::atomic<bool> ready{false};

private:
    os::failing_calls failing_;
    std::thread sleeper_;
};

TEST_P(alarm_test, ends_the_sleep_at_once_or_later_or_before_it_began) {
    const int rounds = 90;
    start(rounds);
    for (int i = 0; i < rounds; ++i) {
        ++due;
        if (i % 3 == 0)
            alarm.ring();
        else
            alarm.set(i % 3 * 100'000);
        if (i % 2 == 0)
            while (woken != i + 1) std::this_thread::yield();
    }
    end();
    EXPECT_EQ(woken, rounds);
}

TEST_P(alarm_test, one_that_was_called_off_can_be_set_again) {
    start(1);
    for (int i = 0; i < 100; ++i) {
        alarm.set(3'600'000'000'000);
        alarm.call_off();
    }
    ++due;
    alarm.set(1'000);
    end();
}

INSTANTIATE_TEST_SUITE_P(ways, alarm_test, testing::Range(0, 5));

// The sleeper takes none of the program's own signals.
TEST(alarm_signal_test, the_programs_signals_go_where_they_went) {
    static std::atomic<int> came;
    came = 0;
    struct sigaction ours {
    }, before[NSIG] = {};
    ours.sa_handler = [](int) { ++came; };
    const std::vector<int> all{SIGUSR1, SIGALRM, SIGRTMIN, SIGRTMAX};
    for (const int number : all) ::sigaction(number, &ours, &before[number]);
    os::alarm alarm;
    std::atomic<bool> ready{false}, ends{false};
    std::thread sleeper{[&] {
        sigset_t set;
        sigfillset(&set);
        pthread_sigmask(SIG_SETMASK, &set, nullptr);
        alarm.begin();
        ready = true;
        while (!ends) alarm.sleep();
    }};
    while (!ready) std::this_thread::yield();
    for (const int number : all) ::kill(::getpid(), number);
    EXPECT_EQ(came, static_cast<int>(all.size()));
    ends = true;
    alarm.ring();
    sleeper.join();
    alarm.end();
    for (const int number : all) ::sigaction(number, &before[number], nullptr);
}

}  // namespace
