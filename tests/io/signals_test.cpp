// SPDX-License-Identifier: MIT
// variants: migrate p1 nosync
#include "ums/signals.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <fcntl.h>
#include <initializer_list>
#include <memory>
#include <spawn.h>
#include <string>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "support/both_worlds.hpp"
#include "support/conservation.hpp"
#include "support/scale.hpp"
#include "ums/child.hpp"
#include "ums/io.hpp"
#include "ums/stats.hpp"

namespace {

using namespace std::chrono_literals;
using ums::deadline_after;
using ums::signal_events;

class signals_test : public conserving_test {
protected:
    void SetUp() override {
        if (under_tsan)
            GTEST_SKIP()
                << "ThreadSanitizer puts a signal off until its thread makes a call that it knows";
    }
};

TEST_F(signals_test, a_signal_wakes_who_waits_for_it) {
    on_a_fiber_and_on_a_thread([] {
        signal_events events{SIGUSR1, SIGUSR2};
        EXPECT_EQ(events.wait(deadline_after(1ms)).error(), std::errc::timed_out);
        ::kill(::getpid(), SIGUSR2);
        EXPECT_EQ(events.wait().value(), SIGUSR2);
        for (int i = 0; i < scaled(100, 20); ++i) {
            ums::fiber sender{[] { ::kill(::getpid(), SIGUSR1); }};
            EXPECT_EQ(events.wait().value(), SIGUSR1);
            sender.join();
        }
    });
}

TEST_F(signals_test, what_a_signal_did_before_is_put_back) {
    const auto before = std::signal(SIGUSR1, SIG_IGN);
    {
        signal_events outer{SIGUSR1};
        {
            signal_events inner{SIGUSR1};
            ::raise(SIGUSR1);
            EXPECT_EQ(inner.wait().value(), SIGUSR1);
        }
        ::raise(SIGUSR1);
        EXPECT_EQ(outer.wait().value(), SIGUSR1);
    }
    EXPECT_EQ(std::signal(SIGUSR1, before), SIG_IGN);
}

TEST_F(signals_test, the_last_one_made_gets_the_signals_they_share) {
    on_a_fiber_and_on_a_thread([] {
        signal_events outer{SIGUSR1, SIGUSR2};
        {
            signal_events inner{SIGUSR1};
            ::kill(::getpid(), SIGUSR1);
            EXPECT_EQ(inner.wait().value(), SIGUSR1);
            ::kill(::getpid(), SIGUSR2);
            EXPECT_EQ(outer.wait().value(), SIGUSR2);
            ::kill(::getpid(), SIGUSR1);
            EXPECT_EQ(outer.wait(deadline_after(1ms)).error(), std::errc::timed_out);
            EXPECT_EQ(inner.wait().value(), SIGUSR1);
            ::raise(SIGUSR1);
        }
        // A signal that came for the inner one and was not waited for disappeared with it.
        EXPECT_EQ(outer.wait(deadline_after(1ms)).error(), std::errc::timed_out);
        ::kill(::getpid(), SIGUSR1);
        EXPECT_EQ(outer.wait().value(), SIGUSR1);
    });
}

TEST_F(signals_test, what_came_before_a_nested_one_was_made_stays) {
    signal_events outer{SIGUSR1};
    ::raise(SIGUSR1);
    {
        signal_events inner{SIGUSR1};
        EXPECT_EQ(inner.wait(deadline_after(1ms)).error(), std::errc::timed_out);
        ::raise(SIGUSR1);
        EXPECT_EQ(inner.wait().value(), SIGUSR1);
    }
    EXPECT_EQ(outer.wait(deadline_after(1ms)).value(), SIGUSR1);
}

TEST_F(signals_test, nested_ones_that_go_in_the_wrong_order_end_the_program) {
    EXPECT_DEATH(
        {
            auto outer = std::make_unique<signal_events>(std::initializer_list<int>{SIGUSR1});
            const signal_events inner{SIGUSR1};
            outer.reset();
        },
        "not destroyed in reverse order");
}

TEST_F(signals_test, each_of_two_signals_wakes_one_of_two_who_wait) {
    ums::run({.processors = 1}, [] {
        for (int i = 0; i < scaled(100, 20); ++i) {
            signal_events events{SIGUSR1, SIGUSR2};
            std::atomic<int> sum = 0;
            const auto wait = [&] { sum += events.wait(deadline_after(20s)).value(); };
            ums::fiber first{wait}, second{wait};
            for (int k = 0; k < i % 10; ++k) ums::this_fiber::yield();
            ::kill(::getpid(), SIGUSR1);
            ::kill(::getpid(), SIGUSR2);
            first.join();
            second.join();
            EXPECT_EQ(sum, SIGUSR1 + SIGUSR2);
        }
    });
}

TEST_F(signals_test, a_number_that_was_closed_behind_our_back_wakes_who_waits_for_signals) {
    on_a_fiber_and_on_a_thread([] {
        int ends[2];
        ums::io::pipe(ends).value();
        char c;
        EXPECT_EQ(ums::io::read(ends[0], &c, 1, deadline_after(1ms)).error(), std::errc::timed_out);
        ::close(ends[0]);
        signal_events events{SIGUSR1};
        const ums::deadline limit = deadline_after(20s);
        ums::fiber sender{[] { ::kill(::getpid(), SIGUSR1); }};
        EXPECT_EQ(events.wait(limit).value(), SIGUSR1);
        EXPECT_LT(ums::deadline::clock::now(), limit);
        sender.join();
        ums::io::close(ends[1]);
    });
}

// The highest real-time signals are the ones that libums chooses from for itself.
TEST_F(signals_test, a_number_that_libums_uses_tells_only_of_signals_that_were_sent) {
    if (never_stops) GTEST_SKIP() << "fibers are not stopped by a signal under this sanitizer";
    ums::run({.processors = 1}, [] {
        std::atomic<bool> is_over{false};
        std::vector<ums::fiber> busy;
        for (int i = 0; i < 2; ++i)
            busy.emplace_back([&] {
                while (!is_over.load(std::memory_order_relaxed)) {
                }
            });
        {
            signal_events outer{SIGRTMAX - 1, SIGRTMAX - 2};
            signal_events inner{SIGRTMAX - 1, SIGRTMAX - 2};
            const std::uint64_t before = ums::stats().preemptions;
            while (ums::stats().preemptions < before + 20) ums::this_fiber::yield();
            EXPECT_EQ(inner.wait(deadline_after(1us)).error(), std::errc::timed_out);
            for (const int number : {SIGRTMAX - 1, SIGRTMAX - 2}) {
                ::kill(::getpid(), number);
                EXPECT_EQ(inner.wait(deadline_after(20s)).value(), number);
            }
            EXPECT_EQ(outer.wait(deadline_after(1us)).error(), std::errc::timed_out);
        }
        is_over = true;
        for (ums::fiber& f : busy) f.join();
    });
}

TEST_F(signals_test, signals_are_told_of_after_the_runtime_that_used_their_number_has_ended) {
    std::unique_ptr<signal_events> outer, inner;
    ums::run({.processors = 1}, [&] {
        outer = std::make_unique<signal_events>(std::initializer_list<int>{SIGRTMAX - 1});
        inner = std::make_unique<signal_events>(std::initializer_list<int>{SIGRTMAX - 1});
    });
    ::raise(SIGRTMAX - 1);
    EXPECT_EQ(inner->wait(deadline_after(20s)).value(), SIGRTMAX - 1);
    inner.reset();
    ::raise(SIGRTMAX - 1);
    EXPECT_EQ(outer->wait(deadline_after(20s)).value(), SIGRTMAX - 1);
    outer.reset();
    struct sigaction now {};
    ASSERT_EQ(::sigaction(SIGRTMAX - 1, nullptr, &now), 0);
    EXPECT_EQ(now.sa_handler, SIG_DFL);
}

TEST_F(signals_test, a_number_that_is_no_signal_is_refused) {
    for (const int number : {0, -1, 65, 1000, SIGKILL, SIGSTOP})
        EXPECT_THROW((signal_events{SIGUSR1, number}), std::system_error) << number;
}

TEST_F(signals_test, the_end_of_a_child_is_waited_for) {
    on_a_fiber_and_on_a_thread([] {
        for (const char* command : {"exit 7", "read x; exit 7"}) {
            int ends[2];
            ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
            posix_spawn_file_actions_t actions;
            posix_spawn_file_actions_init(&actions);
            posix_spawn_file_actions_adddup2(&actions, ends[0], 0);
            std::string text{command};
            char shell[] = "sh", flag[] = "-c";
            char* argv[] = {shell, flag, text.data(), nullptr};
            pid_t pid = 0;
            ASSERT_EQ(posix_spawn(&pid, "/bin/sh", &actions, nullptr, argv, environ), 0);
            posix_spawn_file_actions_destroy(&actions);
            if (text.starts_with("read")) {
                EXPECT_EQ(ums::wait_child(pid, deadline_after(1ms)).error(), std::errc::timed_out);
            }
            ::close(ends[0]);
            ::close(ends[1]);
            const int status = ums::wait_child(pid).value();
            EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
            EXPECT_EQ(ums::wait_child(pid).error(), std::errc::no_child_process);
        }
    });
}

TEST_F(signals_test, a_process_that_is_no_child_is_not_waited_for) {
    on_a_fiber_and_on_a_thread([] {
        EXPECT_EQ(ums::wait_child(::getpid(), deadline_after(20s)).error(),
                  std::errc::no_child_process);
    });
}

}  // namespace
