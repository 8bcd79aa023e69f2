// SPDX-License-Identifier: MIT
// variants: fifo nomembarrier nosync
//
// Fibers that block in the kernel by unmarked calls, with each detector. A fiber opens the gate,
// and there is one processor: without a hand-off these tests would hang.
//
// TEST_BLOCKS=n sets the number of calls of the long mixture, TEST_SEED repeats it.
#include "ums/blocking.hpp"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <random>
#include <string>
#include <sys/prctl.h>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "carry/detect/detector.hpp"
#include "os/signal/user_interrupt.hpp"
#include "sched/block/carrier_pool.hpp"
#include "sched/block/detection.hpp"
#include "sched/run/carrier.hpp"
#include "support/child.hpp"
#include "support/conservation.hpp"
#include "support/gate.hpp"
#include "support/refused_call.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"
#include "support/variant.hpp"
#include "ums/fiber.hpp"
#include "ums/run.hpp"
#include "ums/semaphore.hpp"
#include "ums/stats.hpp"
#include "ums/this_fiber.hpp"

namespace {

using ums::block_detection;
using namespace std::chrono_literals;

// Spares end soon in these tests.
class short_linger {
public:
    short_linger() { ums::sched::carrier_pool::linger = 20'000'000; }
    ~short_linger() { ums::sched::carrier_pool::linger = before_; }
    short_linger(const short_linger&) = delete;
    short_linger& operator=(const short_linger&) = delete;

private:
    const ums::os::nanoseconds before_ = ums::sched::carrier_pool::linger;
};

int thread_id() { return static_cast<int>(::syscall(SYS_gettid)); }

int sleep_raw(long ns) {
    timespec left{0, ns};
    return static_cast<int>(::syscall(SYS_nanosleep, &left, &left));
}

// The running fiber's cluster.
ums::sched::carrier_counters carriers() { return ums::sched::this_carrier()->pool.counters(); }

void wait_until_spares_are_gone(unsigned processors) {
    while (carriers().now > processors + 1) ums::this_fiber::yield();  // One spare stays.
}

class unmarked_test : public ::testing::Test {
protected:
    [[nodiscard]] static ums::options on(unsigned processors) {
        return {.processors = processors, .block = block_detection::monitor};
    }

private:
    const conservation nothing_left_;
};

TEST_F(unmarked_test, the_other_fibers_go_on_whatever_one_blocks_in) {
    for (const gate_kind& kind : gate_kinds()) {
        SCOPED_TRACE(kind.name);
        ums::run(on(1), [&] {
            const auto closed = kind.make();
            std::atomic<bool> passed = false;
            ums::fiber blocked{[&] {
                passed = closed->pass();
                EXPECT_TRUE(passed) << std::strerror(errno);
            }};
            ums::this_fiber::yield();
            EXPECT_FALSE(passed);
            closed->open();
            blocked.join();
            EXPECT_TRUE(passed);
            EXPECT_GE(ums::stats().hand_offs, 1U);
            // The detector counts after it has handed the processor off, so the count may come
            // late.
            const bool is_fault = kind.name == "page fault";
            for (bool is_counted = false; !is_counted;) {
                const auto s = ums::stats();
                std::uint64_t noticed = 0;
                for (const auto n : s.notice_us) noticed += n;
                is_counted =
                    noticed != 0 && (is_fault ? s.blocked_in_faults : s.blocked_in_calls) != 0;
            }
        });
    }
}

TEST_F(unmarked_test, the_other_fibers_go_on_while_one_sleeps) {
    ums::run(on(1), [] {
        std::atomic<bool> asleep = false, seen = false;
        ums::fiber sleeper{[&] {
            while (!seen) {
                asleep = true;
                EXPECT_EQ(sleep_raw(50'000'000), 0);
                asleep = false;
            }
        }};
        while (!asleep) ums::this_fiber::yield();
        seen = true;
        sleeper.join();
    });
}

// There may be nothing to find, because not every file system makes fsync() wait.
TEST_F(unmarked_test, fsync_blocks_nobody_else) {
    char name[] = "unmarked_test_XXXXXX";
    const int fd = ::mkstemp(name);
    ASSERT_GE(fd, 0);
    ::unlink(name);
    ums::run(on(1), [fd] {
        const std::vector<char> some(1 << 20, 'x');
        std::atomic<bool> done = false;
        ums::fiber writer{[&] {
            for (int i = 0; i < scaled(20, 5); ++i) {
                EXPECT_EQ(::pwrite(fd, some.data(), some.size(), 0),
                          static_cast<ssize_t>(some.size()));
                EXPECT_EQ(::fsync(fd), 0);
            }
            done = true;
        }};
        std::uint64_t turns = 0;
        while (!done) {
            ++turns;
            ums::this_fiber::yield();
        }
        writer.join();
        std::cout << turns << " turns, " << ums::stats().hand_offs << " hand-offs\n";
    });
    ::close(fd);
}

TEST_F(unmarked_test, hundreds_block_at_once) {
    ums::run(on(2), [] {
        const auto n = static_cast<std::size_t>(scaled(300, 40));
        std::vector<pipe_gate> gates(n);
        std::vector<ums::fiber> fibers;
        std::atomic<std::size_t> inside = 0;
        for (auto& one : gates)
            fibers.emplace_back([&] {
                ++inside;
                EXPECT_TRUE(one.pass()) << std::strerror(errno);
            });
        while (inside < n) ums::this_fiber::yield();
        for (std::size_t i = n; i-- > 0;) gates[i].open();
        for (auto& one : fibers) one.join();
        EXPECT_GE(carriers().peak, n);
    });
}

// Runs in user mode, without calling libums, after its processor has left.
TEST_F(unmarked_test,
       a_fiber_that_computes_on_without_a_processor_is_stopped_and_stays_on_its_thread) {
    if (never_stops) GTEST_SKIP() << "fibers are not stopped by a signal under this sanitizer";
    ums::run(on(1), [] {
        sigset_t usual;
        pthread_sigmask(SIG_SETMASK, nullptr, &usual);
        for (int round = 0; round < scaled(20, 5); ++round) {
            pipe_gate gate;
            std::atomic<bool> go = false;
            ums::fiber blocked{[&] {
                static thread_local int marker;
                sigset_t before, after;
                stack_t stack_before, stack_after;
                pthread_sigmask(SIG_SETMASK, nullptr, &before);
                sigaltstack(nullptr, &stack_before);
                const int thread = thread_id();
                const auto thread_pointer = pthread_self();
                marker = round;
                EXPECT_TRUE(gate.pass());
                while (!go.load(std::memory_order_relaxed)) {
                }
                EXPECT_EQ(thread_id(), thread);
                EXPECT_EQ(pthread_self(), thread_pointer);
                EXPECT_EQ(marker, round);
                pthread_sigmask(SIG_SETMASK, nullptr, &after);
                sigaltstack(nullptr, &stack_after);
                EXPECT_EQ(std::memcmp(&before, &after, sizeof(long)), 0);
                EXPECT_EQ(stack_before.ss_sp, stack_after.ss_sp);
                EXPECT_EQ(stack_before.ss_flags, stack_after.ss_flags);
                EXPECT_EQ(stack_before.ss_size, stack_after.ss_size);
            }};
            const auto stops = carriers().stops;
            ums::this_fiber::yield();
            gate.open();
            while (carriers().stops == stops) {
                // No yield here, because the fiber must not get the processor before it is stopped.
            }
            go = true;
            blocked.join();
        }
        EXPECT_GE(carriers().stops, 5U);
    });
}

// The clock with a descriptor makes each switch to a thread that blocks several times as dear.
TEST_F(unmarked_test, a_fiber_that_blocks_has_no_clock_that_its_switches_pay_for) {
    if (!ums::os::user_interrupt::has_ticks()) GTEST_SKIP() << "a kernel without ticks";
    auto one = on(1);
    one.time_slice_us = 0;
    ums::run(one, [] {
        pipe_gate gate;
        ums::fiber blocked{[&] { EXPECT_TRUE(gate.pass()); }};
        ums::this_fiber::yield();
        EXPECT_GE(carriers().hand_offs, 1U);
        for (const auto& one : std::filesystem::directory_iterator{"/proc/self/fd"}) {
            std::error_code is_gone;  // The iterator's own, for example.
            const auto target = std::filesystem::read_symlink(one, is_gone).string();
            EXPECT_EQ(target.find("perf_event"), std::string::npos) << target;
        }
        gate.open();
        blocked.join();
    });
}

// Is told as if it slept each time, and passes everything on.
class counting_detector final : public ums::carry::detector {
public:
    explicit counting_detector(ums::carry::detector& real) : real_{real} {
        sleeps_.store(1, ums::base::relaxed);
    }
    std::string start() override { return {}; }
    void stop() noexcept override {}
    void add(ums::carry::load& l) override { real_.add(l); }
    void remove(ums::carry::load& l) noexcept override { real_.remove(l); }
    void call_off(std::uint64_t look) noexcept override { real_.call_off(look); }
    void hurry(std::uint64_t look) noexcept override { real_.hurry(look); }

    std::atomic<int> told = 0;

private:
    std::uint64_t wake() noexcept override {
        ++told;
        return real_.nudge();
    }
    ums::carry::detector& real_;
};

// Otherwise a detector that saw no carrier of interest on the way from one to the other would sleep
// through the next block.
TEST_F(unmarked_test, a_detector_is_told_when_a_stopped_fiber_goes_on) {
    if (never_stops) GTEST_SKIP() << "fibers are not stopped by a signal under this sanitizer";
    using ums::sched::detection;
    ums::run(on(1), [] {
        ums::carry::detector* const real = detection::by;
        counting_detector counting{*real};
        pipe_gate gate;
        std::atomic<bool> go = false;
        ums::fiber blocked{[&] {
            EXPECT_TRUE(gate.pass());
            while (!go.load(std::memory_order_relaxed)) {
            }
            EXPECT_GE(counting.told, 1);
        }};
        const auto stops = carriers().stops;
        ums::this_fiber::yield();
        gate.open();
        while (carriers().stops == stops) {
        }
        detection::by = &counting;
        go = true;
        blocked.join();  // This leads straight to the stopped fiber: no carrier's loop runs.
        detection::by = real;
    });
}

TEST_F(unmarked_test, no_call_ends_with_EINTR) {
    ums::run(on(2), [] {
        const auto seed = test_seed();
        const int rounds = scaled(60, 10);
        std::atomic<int> left = 8;
        std::vector<ums::fiber> all;
        for (unsigned i = 0; i < 8; ++i)
            all.emplace_back([&, i] {
                std::mt19937_64 random{seed + i};
                pipe_gate never;
                const int set = ::epoll_create1(EPOLL_CLOEXEC);
                int ends[2];
                ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
                const timeval wait{0, 2000};
                ::setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
                char byte;
                for (int r = 0; r < rounds; ++r) {
                    switch (random() % 4) {
                        case 0:
                            EXPECT_EQ(::poll(nullptr, 0, 2), 0) << std::strerror(errno);
                            break;
                        case 1:
                            EXPECT_EQ(sleep_raw(1'500'000), 0) << std::strerror(errno);
                            break;
                        case 2: {
                            epoll_event event;
                            EXPECT_EQ(::epoll_wait(set, &event, 1, 2), 0) << std::strerror(errno);
                            break;
                        }
                        default:
                            EXPECT_EQ(::recv(ends[0], &byte, 1, 0), -1);
                            EXPECT_EQ(errno, EAGAIN) << std::strerror(errno);
                    }
                    // Long enough to be stopped at times.
                    for (auto n = random() % 100'000; n-- > 0;) asm volatile("");
                }
                ::close(set);
                ::close(ends[0]);
                ::close(ends[1]);
                --left;
            });
        while (left != 0) ums::this_fiber::yield();
        for (auto& one : all) one.join();
    });
}

TEST_F(unmarked_test, past_the_bound_a_blocked_call_keeps_its_processor_and_nothing_hangs) {
    const short_linger soon;
    ums::options bounded = on(1);
    bounded.carriers = 3;
    ums::run(bounded, [] {
        constexpr int fibers = 20;
        std::vector<ums::fiber> all;
        for (int i = 0; i < fibers; ++i)
            all.emplace_back([] {
                for (int r = 0; r < 5; ++r) EXPECT_EQ(sleep_raw(2'000'000), 0);
            });
        for (auto& one : all) one.join();
        EXPECT_LE(carriers().peak, 3U);
        wait_until_spares_are_gone(1);
    });
}

TEST_F(unmarked_test, a_permit_that_becomes_free_serves_a_blocked_call_that_was_refused_one) {
    ums::options bounded = on(2);
    bounded.carriers = 3;
    ums::run(bounded, [] {
        pipe_gate over;
        std::atomic<bool> has_permit = false, went_on = false;
        ums::fiber marked{[&] {
            ums::blocking([&] {
                has_permit = true;
                while (carriers().refused == 0) {
                }
            });
            // This does not go through the scheduler, because a spare has to serve the other fiber.
            // But where nothing is stopped, a fiber that lost its processor meanwhile would keep
            // the permit as long as it computes.
            while (!went_on)
                if (never_stops) ums::this_fiber::yield();
            over.open();
        }};
        while (!has_permit) ums::this_fiber::yield();
        ums::fiber other{{.pinned = true}, [&] { went_on = true; }};  // Pinned to this processor.
        EXPECT_TRUE(over.pass());
        other.join();
        marked.join();
    });
}

// A fiber that waits for one of the program's locks blocks, too, and the lock's holder needs a
// processor to release it.
TEST_F(unmarked_test, past_the_bound_the_holder_of_a_lock_that_all_wait_for_goes_on) {
    for (const unsigned bound : {2u, 3u, 6u}) {
        ums::options bounded = on(1 + bound / 5);
        bounded.carriers = bound;
        ums::run(bounded, [] {
            constexpr int fibers = 100;
            const int rounds = by_variant(scaled(10, 2), scaled(3, 2));
            std::mutex lock;
            volatile double sink = 1;
            std::vector<ums::fiber> all;
            for (int i = 0; i < fibers; ++i)
                all.emplace_back([&] {
                    for (int r = 0; r < rounds; ++r) {
                        const std::lock_guard guard{lock};
                        EXPECT_EQ(sleep_raw(300'000), 0);
                        // Long enough to be stopped.
                        const auto until = std::chrono::steady_clock::now() + 200us;
                        while (std::chrono::steady_clock::now() < until) sink = sink * 1.0001;
                    }
                });
            for (auto& one : all) one.join();
        });
    }
}

// With kernel threads, the holder would get a CPU now and then, and release the lock.
TEST_F(unmarked_test, a_stopped_fiber_on_whose_spin_lock_the_others_spin_runs_on) {
    ums::run(on(1), [] {
        std::atomic_flag lock = ATOMIC_FLAG_INIT;
        volatile double sink = 1;
        std::vector<ums::fiber> all;
        for (int i = 0; i < 4; ++i)
            all.emplace_back([&] {
                for (int r = 0; r < scaled(3, 2); ++r) {
                    while (lock.test_and_set(std::memory_order_acquire)) {
                    }
                    EXPECT_EQ(sleep_raw(3'000'000), 0);  // Its processor leaves.
                    // Long enough to be stopped.
                    const auto until = std::chrono::steady_clock::now() + 20ms;
                    while (std::chrono::steady_clock::now() < until) sink = sink * 1.0001;
                    lock.clear(std::memory_order_release);
                }
            });
        for (auto& one : all) one.join();
    });
}

// From 1 us to 5 ms, with each factor of two equally often: 0.6 ms on average.
long brief(std::mt19937_64& random) {
    return static_cast<long>(
        std::exp(std::uniform_real_distribution<>{std::log(1e3), std::log(5e6)}(random)));
}

// A call that blocks briefly; one in two is marked.
bool block_briefly(std::mt19937_64& random, int pair[2]) {
    const long ns = brief(random);
    auto call = [&]() -> bool {
        switch (random() % 4) {
            case 0:
                return sleep_raw(ns) == 0;
            case 1: {
                timespec limit{0, ns};
                return ::ppoll(nullptr, 0, &limit, nullptr) == 0;
            }
            case 2: {
                int word = 0;
                timespec limit{0, ns};
                return ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &limit) == -1 &&
                       errno == ETIMEDOUT;
            }
            default: {
                char byte = 'x';
                return ::write(pair[1], &byte, 1) == 1 && ::read(pair[0], &byte, 1) == 1;
            }
        }
    };
    return random() % 2 == 0 ? ums::blocking(call) : call();
}

void block_briefly_often(std::uint64_t calls, ums::options options) {
    const short_linger soon;
    constexpr unsigned bound = 40;
    options.carriers = bound;
    const auto seed = test_seed();
    ums::run(options, [&] {
        constexpr unsigned fibers = 60;
        std::atomic<std::uint64_t> done = 0, wrong = 0;
        std::vector<ums::fiber> all;
        ums::counting_semaphore<> token{1};
        for (unsigned i = 0; i < fibers; ++i)
            all.emplace_back([&, i] {
                std::mt19937_64 random{seed + i};
                int pair[2];
                if (::pipe2(pair, O_CLOEXEC) != 0) std::abort();
                while (done.fetch_add(1) < calls) {
                    if (!block_briefly(random, pair)) {
                        ++wrong;
                        ADD_FAILURE() << std::strerror(errno);
                    }
                    // libums's own waits are in between: a lost wake-up is a hang.
                    if (random() % 4 == 0) {
                        token.acquire();
                        if (random() % 2 == 0) ums::this_fiber::yield();
                        token.release();
                    }
                }
                ::close(pair[0]);
                ::close(pair[1]);
            });
        for (auto& one : all) one.join();
        EXPECT_EQ(wrong, 0U);
        EXPECT_LE(carriers().peak, bound);
        wait_until_spares_are_gone(options.processors);
        const auto s = ums::stats();
        std::cout << s.hand_offs << " hand-offs, " << s.stops << " stops, " << s.preemptions
                  << " preemptions, peak of " << s.carriers_peak << " carriers\n";
    });
}

std::uint64_t wanted_calls() {
    if (const char* given = std::getenv("TEST_BLOCKS")) return std::strtoull(given, nullptr, 10);
    return static_cast<std::uint64_t>(scaled(3000, 400));
}

TEST_F(unmarked_test, brief_blocks_of_all_kinds_at_random_lose_nothing) {
    block_briefly_often(wanted_calls(), on(2));
}

TEST_F(unmarked_test, brief_blocks_on_a_preemptive_cluster_lose_nothing) {
    ums::options options = on(2);
    options.time_slice_us = 1000;
    block_briefly_often(wanted_calls(), options);
}

// Blocks, and is stopped. Reports what was chosen.
int be_confined() {
    ums::run({.processors = 1}, [] {
        const std::string info = ums::info();
        const auto at = info.find("blocking: ");
        std::fprintf(stderr, "%s", info.substr(at, info.find('\n', at) - at).c_str());
        for (const gate_kind& kind : gate_kinds()) {
            const auto closed = kind.make();
            std::atomic<bool> go = false;
            const auto stops = carriers().stops;
            ums::fiber blocked{[&] {
                if (!closed->pass()) std::abort();
                while (!never_stops && !go.load(std::memory_order_relaxed)) {
                }
            }};
            ums::this_fiber::yield();
            closed->open();
            while (!never_stops && carriers().stops == stops) {
            }
            go = true;
            blocked.join();
        }
    });
    return 0;
}

const child_program refused{"refused", [](const child_arguments&) {
                                if (!refuse_call(SYS_perf_event_open, EPERM)) return 77;
                                return be_confined();
                            }};

const child_program ordinary{"ordinary", [](const child_arguments&) {
                                 constexpr unsigned nobody = 65534;
                                 if (::setgid(nobody) != 0 || ::setuid(nobody) != 0) return 77;
                                 // As in a program that such a user has started: it owns its own
                                 // /proc.
                                 ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
                                 return be_confined();
                             }};

using confined_test = conserving_test;

TEST_F(confined_test, with_perf_events_refused_the_monitor_finds_blocks) {
    const child_end end = run_child("refused");
    if (end.code == 77) GTEST_SKIP() << "no seccomp filters here";
    EXPECT_EQ(end.code, 0) << end;
    EXPECT_EQ(end.err.find("blocking: monitor"), 0U) << end;
}

TEST_F(confined_test, an_ordinary_user_needs_nothing) {
    // Such a user may not raise a sentinel that gets no CPU when it is to end.
    const char* const given = std::getenv("TSAN_OPTIONS");
    const child_end end = run_child(
        "ordinary", {},
        {{"TSAN_OPTIONS", std::string{given != nullptr ? given : ""} + ":report_thread_leaks=0"}});
    if (end.code == 77) GTEST_SKIP() << "not root: the other tests have shown it";
    EXPECT_EQ(end.code, 0) << end;
    EXPECT_EQ(end.err.find("blocking: "), 0U) << end;
}

}  // namespace
