// SPDX-License-Identifier: MIT
#include "os/signal/interrupt_signal.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <system_error>
#include <thread>
#include <time.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "os/signal/user_interrupt.hpp"
#include "support/child.hpp"

namespace {

using namespace ums::os;

volatile sig_atomic_t ours, theirs, their_value, usr1_was_blocked;

void on_interrupt(const siginfo_t&, void*) noexcept { ours = ours + 1; }

void their_action(int, siginfo_t* info, void*) {
    theirs = theirs + 1;
    their_value = info->si_value.sival_int;
    sigset_t now;
    pthread_sigmask(SIG_BLOCK, nullptr, &now);
    usr1_was_blocked = sigismember(&now, SIGUSR1);
}
void their_handler(int) { theirs = theirs + 1; }

void send(int signal, int value) {
    sigval with{};
    with.sival_int = value;
    ASSERT_EQ(pthread_sigqueue(pthread_self(), signal, with), 0);
    // ThreadSanitizer delivers it at the next call that it knows.
    sigset_t now;
    pthread_sigmask(SIG_BLOCK, nullptr, &now);
}

class interrupt_signal_test : public ::testing::Test {
protected:
    interrupt_signal_test() {
        ours = 0;
        theirs = 0;
        their_value = 0;
        usr1_was_blocked = 0;
    }
    const int number_ = interrupt_signal::unused();
};

TEST_F(interrupt_signal_test, the_number_is_one_that_nobody_uses) {
    ASSERT_TRUE(interrupt_signal::is_usable(number_));
    struct sigaction mine {
    }, before{};
    mine.sa_handler = their_handler;
    ASSERT_EQ(sigaction(number_, &mine, &before), 0);
    EXPECT_NE(interrupt_signal::unused(), number_);
    sigaction(number_, &before, nullptr);
    EXPECT_EQ(interrupt_signal::unused(), number_);
}

TEST_F(interrupt_signal_test, the_number_is_one_that_nobody_blocks_to_wait_for_it) {
    sigset_t one, all, before;
    sigemptyset(&one);
    sigaddset(&one, number_);
    pthread_sigmask(SIG_BLOCK, &one, &before);
    EXPECT_TRUE(interrupt_signal::is_usable(interrupt_signal::unused()));
    EXPECT_NE(interrupt_signal::unused(), number_);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    EXPECT_EQ(interrupt_signal::unused(), SIGSTKFLT);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST_F(interrupt_signal_test, other_numbers_are_refused) {
    for (const int bad : {-1, 0, SIGINT, SIGUSR1, 32, SIGRTMAX + 1}) {
        EXPECT_FALSE(interrupt_signal::is_usable(bad));
        EXPECT_THROW((interrupt_signal{bad, &on_interrupt}), std::system_error);
    }
}

TEST_F(interrupt_signal_test, the_applications_own_signals_reach_its_handler) {
    struct sigaction mine {
    }, before{};
    mine.sa_sigaction = their_action;
    mine.sa_flags = SA_SIGINFO;
    sigaddset(&mine.sa_mask, SIGUSR1);
    ASSERT_EQ(sigaction(number_, &mine, &before), 0);
    {
        const interrupt_signal installed{number_, &on_interrupt};
        EXPECT_TRUE(installed.is_installed());
        send(number_, 77);
        EXPECT_EQ(theirs, 1);
        EXPECT_EQ(their_value, 77);
        EXPECT_TRUE(usr1_was_blocked);
        sigset_t now;
        pthread_sigmask(SIG_BLOCK, nullptr, &now);
        EXPECT_FALSE(sigismember(&now, SIGUSR1));
    }
    send(number_, 78);  // The handler is back.
    EXPECT_EQ(their_value, 78);
    sigaction(number_, &before, nullptr);
    EXPECT_EQ(ours, 0);
}

TEST_F(interrupt_signal_test, a_plain_handler_is_called_too) {
    struct sigaction mine {
    }, before{};
    mine.sa_handler = their_handler;
    ASSERT_EQ(sigaction(number_, &mine, &before), 0);
    {
        const interrupt_signal installed{number_, &on_interrupt};
        raise(number_);
    }
    sigaction(number_, &before, nullptr);
    EXPECT_EQ(theirs, 1);
}

TEST_F(interrupt_signal_test, a_signal_that_was_ignored_still_is) {
    struct sigaction mine {
    }, before{};
    mine.sa_handler = SIG_IGN;
    ASSERT_EQ(sigaction(number_, &mine, &before), 0);
    {
        const interrupt_signal installed{number_, &on_interrupt};
        raise(number_);
    }
    sigaction(number_, &before, nullptr);
    EXPECT_EQ(ours, 0);
}

TEST_F(interrupt_signal_test, it_sees_that_the_application_has_replaced_it) {
    const struct sigaction fallen = [] {
        struct sigaction a {};
        a.sa_handler = SIG_DFL;
        return a;
    }();
    {
        const interrupt_signal installed{number_, &on_interrupt};
        struct sigaction mine {
        }, before{};
        mine.sa_handler = their_handler;
        ASSERT_EQ(sigaction(number_, &mine, &before), 0);
        EXPECT_FALSE(installed.is_installed());
    }
    raise(number_);  // The application's handler has stayed.
    EXPECT_EQ(theirs, 1);
    sigaction(number_, &fallen, nullptr);
}

TEST_F(interrupt_signal_test, errno_is_kept) {
    struct sigaction mine {
    }, before{};
    mine.sa_handler = [](int) { errno = EBADF; };
    ASSERT_EQ(sigaction(number_, &mine, &before), 0);
    {
        const interrupt_signal installed{number_, &on_interrupt};
        errno = 5;
        ::syscall(SYS_tgkill, ::getpid(), ::syscall(SYS_gettid), number_);
        EXPECT_EQ(errno, 5);
    }
    sigaction(number_, &before, nullptr);
}

TEST_F(interrupt_signal_test, a_timer_or_a_descriptor_of_others_is_not_ours) {
    siginfo_t signal{};
    signal.si_code = SI_TIMER;
    signal.si_value.sival_ptr = this;
    EXPECT_FALSE(user_interrupt::take(signal));
    for (const int fd : {-1, 0, 3, 4095, 4096, 1 << 20, __INT_MAX__}) {
        siginfo_t io{};
        io.si_code = POLL_IN;
        io.si_fd = fd;
        EXPECT_FALSE(user_interrupt::take(io)) << fd;
    }
    siginfo_t sent{};
    sent.si_code = SI_USER;
    EXPECT_FALSE(user_interrupt::take(sent));
}

const child_program dies{"dies", [](const child_arguments&) {
                             const int number = interrupt_signal::unused();
                             const interrupt_signal installed{number, &on_interrupt};
                             raise(number);
                             return 0;
                         }};

TEST_F(interrupt_signal_test, a_signal_that_nobody_handles_kills_as_it_would_have) {
    const child_end end = run_child("dies");
    EXPECT_EQ(end.signal, number_) << end;
}

// --- SIGIO in place of a signal that found no room ---

std::atomic<int> interrupts;

void count(const siginfo_t&, void*) noexcept { ++interrupts; }

bool is_due_in_time(int at_least) {
    for (std::uint64_t i = 0; i < 20'000'000'000 && interrupts < at_least; ++i) {
    }
    return interrupts >= at_least;
}

void limit_pending_signals(rlim_t n) {
    rlimit limit{};
    ::getrlimit(RLIMIT_SIGPENDING, &limit);
    limit.rlim_cur = n;
    ::setrlimit(RLIMIT_SIGPENDING, &limit);
}

// The clock is armed while no signal finds room; then there is room.
const child_program overflows{
    "overflows", [](const child_arguments&) {
        rlimit before{};
        ::getrlimit(RLIMIT_SIGPENDING, &before);
        const interrupt_signal installed{interrupt_signal::unused(), &count};
        if (user_interrupt::best_way() != user_interrupt::way::perf) return 77;
        user_interrupt own{static_cast<int>(::syscall(SYS_gettid)), installed.number(),
                           user_interrupt::way::perf};
        limit_pending_signals(0);
        own.arm(1'000'000);
        timespec begun{}, now{};
        ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begun);
        do ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        while ((now.tv_sec - begun.tv_sec) * 1'000'000'000 + now.tv_nsec - begun.tv_nsec <
               50'000'000);
        if (interrupts != 0) return 1;
        limit_pending_signals(before.rlim_cur);
        return is_due_in_time(1) ? 0 : 2;
    }};

TEST_F(interrupt_signal_test, one_that_finds_no_room_kills_nobody_and_comes_later) {
    const child_end end = run_child("overflows");
    if (end.code == 77) GTEST_SKIP() << "no perf events here";
    EXPECT_EQ(end.code, 0) << end;
}

const child_program sends_io{
    "sends_io", [](const child_arguments&) {
        const interrupt_signal installed{interrupt_signal::unused(), &count};
        ::raise(SIGIO);
        return 0;
    }};

TEST_F(interrupt_signal_test, a_sigio_that_somebody_sends_kills_as_it_would_have) {
    EXPECT_EQ(run_child("sends_io").signal, SIGIO);
}

TEST_F(interrupt_signal_test, sigio_is_given_back) {
    struct sigaction before {
    }, during{}, after{};
    ::sigaction(SIGIO, nullptr, &before);
    {
        const interrupt_signal one{interrupt_signal::unused(), &count};
        const int next = interrupt_signal::unused();
        const interrupt_signal other{next, &count};
        ::sigaction(SIGIO, nullptr, &during);
    }
    ::sigaction(SIGIO, nullptr, &after);
    EXPECT_NE(during.sa_handler, before.sa_handler);
    EXPECT_EQ(after.sa_handler, before.sa_handler);
}

}  // namespace
