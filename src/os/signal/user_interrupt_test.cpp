// SPDX-License-Identifier: MIT
#include "os/signal/user_interrupt.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <optional>
#include <poll.h>
#include <sched.h>
#include <string>
#include <sys/syscall.h>
#include <system_error>
#include <thread>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "internal/failing_calls.hpp"
#include "os/signal/interrupt_signal.hpp"
#include "support/conservation.hpp"
#include "support/error_of.hpp"
#include "support/scale.hpp"

namespace {

using namespace ums::os;
using way = user_interrupt::way;

int current_tid() { return static_cast<int>(::syscall(SYS_gettid)); }

std::atomic<std::uint64_t> taken, after_eintr, seen;
std::atomic<std::uint64_t> asked;
std::atomic<int> last_tid;

// Whether the instruction before this one was a system call that failed with EINTR.
bool follows_an_interrupted_call(const void* context) {
#if defined(__x86_64__)
    const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
    if (registers[REG_RAX] != -EINTR) return false;
    const auto* at = reinterpret_cast<const unsigned char*>(registers[REG_RIP]);
    return at[-2] == 0x0f && at[-1] == 0x05;
#else
    static_cast<void>(context);
    return false;
#endif
}

void note(const siginfo_t&, void* context) noexcept {
    if (follows_an_interrupted_call(context)) ++after_eintr;
    last_tid = current_tid();
    seen = asked.load();
    ++taken;
    taken.notify_all();
}

// Computes in user mode, but where ThreadSanitizer, which runs a handler only at calls that it
// knows, lets it run.
void compute() {
    for (volatile int i = 0; i < 200;) i = i + 1;
    if (under_tsan) {
        sigset_t none;
        sigemptyset(&none);
        pthread_sigmask(SIG_BLOCK, &none, nullptr);
    }
}

// A thread that does the same thing until it is told to stop.
class target {
public:
    template <class F>
    explicit target(F step)
        : thread_{[this, step] {
              tid_ = current_tid();
              tid_.notify_all();
              for (; !ends_; ++steps_) step();
          }} {
        tid_.wait(0);
    }
    ~target() {
        ends_ = true;
        thread_.join();
    }
    [[nodiscard]] int tid() const { return tid_; }

    // Returns when the thread has done its work `times` more.
    void go_on(std::uint64_t times) const {
        for (const std::uint64_t end = steps_ + times; steps_ < end;) ::sched_yield();
    }

private:
    std::atomic<int> tid_{0};
    std::atomic<bool> ends_{false};
    std::atomic<std::uint64_t> steps_{0};
    std::thread thread_;
};

class user_interrupt_test : public ::testing::TestWithParam<way> {
protected:
    void SetUp() override {
        if (GetParam() == way::perf && user_interrupt::best_way() != way::perf)
            GTEST_SKIP() << "perf_event_open is refused here";
        taken = after_eintr = seen = asked = 0;
    }
    conservation nothing_left_;
    [[nodiscard]] int number() const { return signal_->number(); }
    std::optional<interrupt_signal> signal_{std::in_place, interrupt_signal::unused(), &note,
                                            SA_ONSTACK};
};

TEST_P(user_interrupt_test, a_thread_that_computes_is_stopped_once) {
    target t{compute};
    user_interrupt interrupt{t.tid(), number(), GetParam()};
    for (std::uint64_t i = 0; i < 20; ++i) {
        interrupt.arm(50'000);
        taken.wait(i);
        EXPECT_EQ(taken, i + 1);
        EXPECT_EQ(last_tid, t.tid());
    }
    // For some time of its own, in which no other signal comes.
    t.go_on(20'000);
    EXPECT_EQ(taken, 20u);
}

TEST_P(user_interrupt_test, its_handler_sees_what_the_armer_wrote_before) {
    target t{compute};
    user_interrupt interrupt{t.tid(), number(), GetParam()};
    const std::uint64_t rounds =
        static_cast<std::uint64_t>(GetParam() == way::perf ? scaled(300, 100) : 20);
    for (std::uint64_t i = 1; i <= rounds; ++i) {
        asked = i;
        interrupt.arm(10'000);
        // An older signal may come first, but it never misses one.
        while (seen < i) {
            const std::uint64_t before = taken;
            if (seen < i) taken.wait(before);
        }
    }
    EXPECT_LE(taken, rounds);
}

TEST_P(user_interrupt_test, what_is_disarmed_does_not_come) {
    target t{compute};
    user_interrupt interrupt{t.tid(), number(), GetParam()};
    for (int i = 0; i < 50; ++i) {
        interrupt.arm(10'000'000'000);
        interrupt.disarm();
    }
    EXPECT_EQ(taken, 0u);
    // And it can be armed again: one signal comes, not fifty.
    interrupt.arm(20'000);
    taken.wait(0);
    t.go_on(20'000);
    EXPECT_EQ(taken, 1u);
}

// The armer is preempted within arm() for so long that meanwhile the signal comes and is taken.
TEST_P(user_interrupt_test, an_armer_that_is_slow_gets_one_signal) {
    if (GetParam() == way::timer) GTEST_SKIP() << "the timer is armed by one system call";
    failing_calls calls;
    target t{compute};
    user_interrupt interrupt{t.tid(), number(), GetParam()};
    interrupt.arm(10'000'000'000);
    ums::os::system.perf_control = [](int fd, unsigned long request,
                                      unsigned long argument) noexcept {
        const long result = kernel_calls.perf_control(fd, request, argument);
        if (request == PERF_EVENT_IOC_PERIOD) taken.wait(0);
        return result;
    };
    interrupt.arm(20'000);
    t.go_on(20'000);
    EXPECT_EQ(taken, 1u);
    // The next one is an arm of its own.
    interrupt.arm(20'000);
    while (taken != 2) taken.wait(1);
    t.go_on(20'000);
    EXPECT_EQ(taken, 2u);
}

TEST_P(user_interrupt_test, armed_twice_it_comes_once) {
    target t{compute};
    user_interrupt interrupt{t.tid(), number(), GetParam()};
    interrupt.arm(10'000'000'000);
    interrupt.arm(9'000'000'000);
    interrupt.arm(20'000);
    taken.wait(0);
    t.go_on(20'000);
    EXPECT_EQ(taken, 1u);
}

TEST_P(user_interrupt_test, a_thread_can_arm_its_own_also_in_the_handler) {
    static user_interrupt* own;
    static std::atomic<int> left;
    left = GetParam() == way::perf ? 100 : 5;
    const int same = number();
    signal_.reset();
    signal_.emplace(same, [](const siginfo_t&, void*) noexcept {
        if (--left > 0) own->arm(10'000);
    });
    std::thread{[&] {
        user_interrupt mine{current_tid(), same, GetParam()};
        own = &mine;
        mine.arm(10'000);
        while (left > 0) compute();
    }}.join();
    EXPECT_EQ(left, 0);
}

// Counts the system calls, and the signals that interrupted one.
std::atomic<std::uint64_t> calls, interrupted;

void count(long result) {
    ++calls;
    if (result == -1 && errno == EINTR) ++interrupted;
}

template <class F>
void expect_no_call_is_interrupted(int number, way how, int wanted_calls, F step) {
    calls = interrupted = 0;
    target t{step};
    user_interrupt interrupt{t.tid(), number, how};
    std::uint64_t arms = 0;
    while (calls < static_cast<std::uint64_t>(wanted_calls)) {
        interrupt.arm(10'000);
        ++arms;
        for (int i = 0; i < 20; ++i) compute();
    }
    interrupt.disarm();
    EXPECT_EQ(interrupted, 0u);
    EXPECT_EQ(after_eintr, 0u);
    EXPECT_LE(taken, arms);
}

TEST_P(user_interrupt_test, never_interrupts_a_sleep) {
    expect_no_call_is_interrupted(number(), GetParam(), scaled(1'000, 200), [] {
        const timespec brief{0, 20'000};
        count(::syscall(SYS_nanosleep, &brief, nullptr));
        compute();
    });
}

TEST_P(user_interrupt_test, never_interrupts_a_long_sleep) {
    expect_no_call_is_interrupted(number(), GetParam(), 30, [] {
        const timespec brief{0, 10'000'000};
        count(::syscall(SYS_nanosleep, &brief, nullptr));
        compute();
    });
}

TEST_P(user_interrupt_test, never_interrupts_a_poll) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    expect_no_call_is_interrupted(number(), GetParam(), scaled(100'000, 5'000), [&] {
        pollfd one{ends[0], POLLIN, 0};
        count(::syscall(SYS_poll, &one, 1, 0));
    });
    ::close(ends[0]);
    ::close(ends[1]);
}

TEST_P(user_interrupt_test, never_interrupts_a_read_that_waits) {
    int there[2], back[2];
    ASSERT_EQ(::pipe2(there, O_CLOEXEC), 0);
    ASSERT_EQ(::pipe2(back, O_CLOEXEC), 0);
    std::thread echo{[&] {
        char byte;
        while (::read(there[0], &byte, 1) == 1 && ::write(back[1], &byte, 1) == 1) {
        }
    }};
    expect_no_call_is_interrupted(number(), GetParam(), scaled(10'000, 1'000), [&] {
        char byte = 0;
        count(::syscall(SYS_write, there[1], &byte, 1));
        count(::syscall(SYS_read, back[0], &byte, 1));
        compute();
    });
    ::close(there[1]);
    echo.join();
    for (const int fd : {there[0], back[0], back[1]}) ::close(fd);
}

TEST_P(user_interrupt_test, a_blocked_signal_waits_and_floods_nobody) {
    target t{[] {
        // The signal is blocked nearly all the time.
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        for (int i = 0; i < 1000; ++i) compute();
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }};
    user_interrupt interrupt{t.tid(), number(), GetParam()};
    std::uint64_t arms = 0;
    while (taken < 10) {
        interrupt.arm(10'000);
        ++arms;
        for (int i = 0; i < 20; ++i) compute();
    }
    EXPECT_LE(taken, arms);
}

TEST_P(user_interrupt_test, armers_may_race) {
    target t{compute};
    user_interrupt interrupt{t.tid(), number(), GetParam()};
    std::vector<std::thread> all;
    std::atomic<std::uint64_t> arms{0};
    const int rounds = GetParam() == way::perf ? scaled(1'000, 200) : 200;
    for (int n = 0; n < 3; ++n)
        all.emplace_back([&, n] {
            for (int i = 0; i < rounds; ++i) {
                ++arms;
                interrupt.arm(10'000 + n * 1'000);
                if (n == 2) interrupt.disarm();
            }
        });
    for (std::thread& one : all) one.join();
    EXPECT_LE(taken, arms);
    // None of that is left over.
    const std::uint64_t now = arms + 1;
    asked = now;
    interrupt.arm(10'000);
    while (seen < now) {
        const std::uint64_t before = taken;
        if (seen < now) taken.wait(before);
    }
    EXPECT_LE(taken, now);
}

TEST_P(user_interrupt_test, the_kernels_refusal_is_reported) {
    failing_calls failing;
    failing.fail(failing_calls::perf_event_open, 1, 1, EACCES);
    failing.fail(failing_calls::thread_timer_create, 1, 1, EAGAIN);
    EXPECT_EQ(error_of([&] {
                  user_interrupt{current_tid(), number(), GetParam()};
              }),
              GetParam() == way::perf ? std::errc::permission_denied
                                      : std::errc::resource_unavailable_try_again);
}

INSTANTIATE_TEST_SUITE_P(both, user_interrupt_test, ::testing::Values(way::perf, way::timer),
                         [](const auto& of) {
                             return std::string{of.param == way::perf ? "perf" : "timer"};
                         });

TEST(user_interrupt, without_perf_the_timer_is_best) {
    failing_calls failing;
    failing.fail(failing_calls::perf_event_open, 1, 1, EPERM);
    EXPECT_EQ(user_interrupt::best_way(), way::timer);
}

}  // namespace
