// SPDX-License-Identifier: MIT
// variants: fifo nomembarrier
//
// Fibers that the signal stops because their time slice is over, wherever they are.
//
// TEST_PREEMPTIONS=n sets the number of the long mixtures.
#include "ums/blocking.hpp"

#include <atomic>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <immintrin.h>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <pthread.h>
#include <setjmp.h>
#include <stdexcept>
#include <string>
#include <sys/syscall.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "os/clock.hpp"
#include "os/signal/interrupt_signal.hpp"
#include "sched/block/stop.hpp"
#include "support/conservation.hpp"
#include "support/error_of.hpp"
#include "support/scale.hpp"
#include "ums/cluster.hpp"
#include "ums/fiber.hpp"
#include "ums/mutex.hpp"
#include "ums/run.hpp"
#include "ums/stats.hpp"
#include "ums/this_fiber.hpp"

namespace {

class preemption_test : public ::testing::Test {
protected:
    void SetUp() override {
        if (never_stops) GTEST_SKIP() << "fibers are not stopped by a signal under this sanitizer";
    }
    [[nodiscard]] static ums::options on(unsigned processors) {
        return {.processors = processors,
                .time_slice_us = 1000,
                .block = ums::block_detection::monitor};
    }

private:
    const conservation nothing_left_;
};

// Stopped fibers wait for their turn, however long that takes.
struct patient_stops {
    patient_stops() { ums::sched::stop::patience = 1'000'000'000'000; }
    ~patient_stops() { ums::sched::stop::patience = before; }
    const ums::os::nanoseconds before = ums::sched::stop::patience;
};

TEST_F(preemption_test, an_endless_loop_lets_the_others_run) {
    ums::run(on(1), [] {
        std::atomic<bool> over = false;
        ums::fiber endless{[&] {
            while (!over.load(std::memory_order_relaxed)) {
            }
        }};
        for (int i = 0; i < 20; ++i) ums::this_fiber::yield();
        over = true;
        endless.join();
        EXPECT_GE(ums::stats().preemptions, 1U);
    });
}

TEST_F(preemption_test, endless_loops_share_their_processors) {
    ums::run(on(2), [] {
        std::atomic<int> turns[6]{};
        std::atomic<bool> over = false;
        std::vector<ums::fiber> all;
        for (auto& mine : turns)
            all.emplace_back([&] {
                // Each also waits until all the others have had a turn.
                while (!over.load(std::memory_order_relaxed))
                    mine.store(1, std::memory_order_relaxed);
            });
        for (const auto& one : turns)
            while (one == 0) ums::this_fiber::yield();
        over = true;
        for (auto& one : all) one.join();
    });
}

// The fiber blocks, computes on when it comes back, is stopped, and then nothing else is ready.
TEST_F(preemption_test, who_was_stopped_without_a_processor_has_its_slice_too) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    ums::run(on(1), [&] {
        std::atomic<bool> over = false;
        ums::fiber blocks{[&] {
            char byte;
            EXPECT_EQ(::read(ends[0], &byte, 1), 1);
            // The latter happens if it has not lost its processor, because it was not found
            // blocked.
            while (ums::stats().stops == 0 && ums::stats().preemptions < 20) {
            }
            over = true;
        }};
        while (ums::stats().hand_offs == 0) ums::this_fiber::yield();
        EXPECT_EQ(::write(ends[1], "x", 1), 1);
        while (!over.load(std::memory_order_relaxed)) {
        }
        blocks.join();
    });
    ::close(ends[0]);
    ::close(ends[1]);
}

TEST_F(preemption_test, a_cluster_of_its_own_may_be_preemptive_alone) {
    ums::options cooperative = on(1);
    cooperative.time_slice_us = 0;
    ums::run(cooperative, [] {
        ums::cluster own{{.name = "own", .time_slice_us = 1000}};
        std::atomic<bool> over = false;
        ums::fiber_options where;
        where.cluster = &own;
        ums::fiber endless{where, [&] {
                               while (!over.load(std::memory_order_relaxed)) {
                               }
                           }};
        ums::fiber other{where, [&] { over = true; }};
        other.join();
        endless.join();
        EXPECT_EQ(ums::stats().preemptions, 0U) << "of the default cluster";
    });
}

// limits.md recommends this to programs that wait for signals in a thread of their own.
TEST_F(preemption_test, signals_blocked_before_the_start_do_not_block_the_one_that_stops_fibers) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    ums::run(on(1), [] {
        std::atomic<bool> over = false;
        ums::fiber endless{[&] {
            while (!over.load(std::memory_order_relaxed)) {
            }
        }};
        ums::this_fiber::yield();
        over = true;
        endless.join();
    });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// Notes where its methods were called.
class observant_policy final : public ums::policy {
public:
    explicit observant_policy(std::atomic<bool>& in_handler) noexcept : in_handler_{in_handler} {}
    void attach(unsigned) override {}
    void detach(unsigned) override {}
    void ready(ums::fiber_ref f, unsigned) noexcept override {
        stack_t here{};
        if (::sigaltstack(nullptr, &here) == 0 && (here.ss_flags & SS_ONSTACK) != 0)
            in_handler_ = true;
        const std::lock_guard guard{lock_};
        queue_.push_back(f);
    }
    ums::fiber_ref next(unsigned) noexcept override {
        const std::lock_guard guard{lock_};
        return queue_.pop_front();
    }
    [[nodiscard]] bool empty(unsigned) const noexcept override { return false; }

private:
    std::atomic<bool>& in_handler_;
    std::mutex lock_;
    ums::fiber_queue queue_;
};

TEST_F(preemption_test, a_policy_is_never_called_in_the_signal_handler) {
    std::atomic<bool> in_handler = false;
    ums::options options = on(1);
    options.make_policy = [&] { return std::make_unique<observant_policy>(in_handler); };
    ums::run(options, [] {
        std::atomic<bool> over = false;
        std::vector<ums::fiber> endless;
        for (int i = 0; i < 3; ++i)
            endless.emplace_back([&] {
                while (!over.load(std::memory_order_relaxed)) {
                }
            });
        while (ums::stats().preemptions < 20) ums::this_fiber::yield();
        over = true;
        for (auto& one : endless) one.join();
    });
    EXPECT_FALSE(in_handler);
}

TEST_F(preemption_test, an_uninterruptible_section_is_not_stopped) {
    const patient_stops others_are_not_released;
    ums::run(on(1), [] {
        std::atomic<std::uint64_t> turns = 0;
        std::atomic<bool> over = false;
        ums::fiber other{[&] {
            while (!over.load(std::memory_order_relaxed))
                turns.fetch_add(1, std::memory_order_relaxed);
        }};
        for (int round = 0; round < 5; ++round) {
            ums::this_fiber::yield();
            ums::uninterruptible([&] {
                const auto before = turns.load();
                ums::uninterruptible([] {});
                // This takes several slices.
                for (const auto until = ums::os::now() + 10'000'000; ums::os::now() < until;) {
                }
                EXPECT_EQ(turns.load(), before);
            });
        }
        over = true;
        other.join();
        EXPECT_EQ(ums::uninterruptible([] { return 3; }), 3);
    });
    EXPECT_EQ(ums::uninterruptible([] { return 4; }), 4);
}

// No instruction of the loop lies outside a section for long enough for a signal.
TEST_F(preemption_test, a_stop_that_comes_due_in_a_section_takes_effect_at_its_end) {
    const patient_stops others_are_not_released;
    ums::run(on(1), [] {
        std::atomic<bool> over = false;
        ums::fiber sections{[&] {
            const auto thread = ::syscall(SYS_gettid);
            while (!over.load(std::memory_order_relaxed))
                ums::uninterruptible([&] {
                    ums::uninterruptible([] {});
                    errno = 77;
                    for (const auto until = ums::os::now() + 300'000; ums::os::now() < until;) {
                    }
                });
            EXPECT_EQ(errno, 77);
            EXPECT_EQ(::syscall(SYS_gettid), thread);
        }};
        for (int i = 0; i < 10; ++i) ums::this_fiber::yield();
        EXPECT_GE(ums::stats().preemptions, 1U);
        over = true;
        sections.join();
    });
}

TEST_F(preemption_test, masks_alternate_stacks_and_errno_stay_as_the_fiber_set_them) {
    ums::run(on(1), [] {
        std::atomic<bool> over = false;
        ums::fiber other{[&] {
            while (!over.load(std::memory_order_relaxed)) errno = 1;
        }};
        sigset_t mine, now;
        sigemptyset(&mine);
        sigaddset(&mine, SIGUSR2);
        sigset_t usual;
        pthread_sigmask(SIG_SETMASK, &mine, &usual);
        stack_t before, after;
        sigaltstack(nullptr, &before);
        const auto thread = pthread_self();
        errno = 77;
        // The fiber is stopped, and does not yield, so it stays on its kernel thread.
        while (ums::stats().preemptions < 5) EXPECT_EQ(errno, 77);
        EXPECT_EQ(pthread_self(), thread);
        pthread_sigmask(SIG_SETMASK, &usual, &now);
        EXPECT_EQ(sigismember(&now, SIGUSR2), 1);
        EXPECT_EQ(sigismember(&now, SIGUSR1), 0);
        sigaltstack(nullptr, &after);
        EXPECT_EQ(before.ss_sp, after.ss_sp);
        EXPECT_EQ(before.ss_flags, after.ss_flags);
        over = true;
        other.join();
    });
}

sigjmp_buf after_limit;
void leave_by_jump(int) { siglongjmp(after_limit, 1); }

// As a computation whose time limit is a timer of the thread's own.
TEST_F(preemption_test, a_handler_that_leaves_a_stopped_fiber_by_siglongjmp_waits_for_its_turn) {
    const patient_stops others_are_not_released;
    struct sigaction jumps {
    }, before{};
    jumps.sa_handler = &leave_by_jump;
    jumps.sa_flags = SA_ONSTACK;
    ASSERT_EQ(sigaction(SIGUSR1, &jumps, &before), 0);
    ums::run(on(1), [] {
        for (int round = 0; round < 20; ++round) {
            std::atomic<pid_t> tid = 0;
            std::atomic<bool> left = false;
            ums::fiber limited{[&] {
                sigset_t usual, now;
                pthread_sigmask(SIG_BLOCK, nullptr, &usual);
                if (sigsetjmp(after_limit, 1) == 0) {
                    tid = static_cast<pid_t>(::syscall(SYS_gettid));
                    for (;;) {
                    }
                }
                left = true;
                pthread_sigmask(SIG_BLOCK, nullptr, &now);
                for (int n = 1; n <= SIGRTMAX; ++n)
                    EXPECT_EQ(sigismember(&now, n), sigismember(&usual, n)) << n;
                ums::this_fiber::yield();
            }};
            while (tid == 0) ums::this_fiber::yield();
            // It never yields, so it has been stopped.
            ums::uninterruptible([&] {
                ASSERT_EQ(::syscall(SYS_tgkill, ::getpid(), tid.load(), SIGUSR1), 0);
                for (const auto until = ums::os::now() + 2'000'000; ums::os::now() < until;) {
                }
                EXPECT_FALSE(left) << "it ran without its turn";
            });
            limited.join();
            EXPECT_TRUE(left);
        }
    });
    sigaction(SIGUSR1, &before, nullptr);
}

// One plain thread takes all signals.
TEST_F(preemption_test, signals_that_a_thread_takes_by_sigwait_do_not_come_to_the_runtime) {
    sigset_t all, realtime, before;
    sigfillset(&all);
    sigemptyset(&realtime);
    for (int n = SIGRTMIN; n <= SIGRTMAX; ++n) sigaddset(&realtime, n);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    constexpr int wanted = 50;
    int got = 0;
    std::thread takes{[&] {
        while (got < wanted)
            if (sigwaitinfo(&realtime, nullptr) > 0) ++got;
    }};
    ums::run(on(1), [] {
        std::atomic<bool> over = false;
        ums::fiber endless{[&] {
            while (!over.load(std::memory_order_relaxed)) {
            }
        }};
        ums::this_fiber::yield();  // With all blocked, the endless fiber is stopped all the same.
        for (int i = 0; i < wanted; ++i)
            ASSERT_EQ(sigqueue(::getpid(), SIGRTMIN + i % (SIGRTMAX - SIGRTMIN + 1), {}), 0);
        over = true;
        endless.join();
    });
    takes.join();
    EXPECT_EQ(got, wanted);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

std::atomic<int> application_signals;

TEST_F(preemption_test, the_applications_handler_of_the_same_signal_goes_on_working) {
    const int number = ums::os::interrupt_signal::unused();
    ASSERT_NE(number, 0);
    struct sigaction theirs {
    }, before{}, after{};
    theirs.sa_handler = [](int) { ++application_signals; };
    ASSERT_EQ(sigaction(number, &theirs, &before), 0);
    application_signals = 0;
    ums::options options = on(1);
    options.signal = number;
    ums::run(options, [number] {
        std::atomic<bool> over = false;
        ums::fiber other{[&] {
            while (!over.load(std::memory_order_relaxed)) {
            }
        }};
        for (int i = 1; i <= 20; ++i) {
            // Called by number: after a yield, compilers take pthread_self() to be unchanged.
            ASSERT_EQ(::syscall(SYS_tgkill, ::getpid(), ::syscall(SYS_gettid), number), 0);
            EXPECT_EQ(application_signals, i);
            ums::this_fiber::yield();
        }
        over = true;
        other.join();
        EXPECT_GE(ums::stats().preemptions, 1U);
        EXPECT_EQ(application_signals, 20) << "it saw signals that were not its own";
    });
    ASSERT_EQ(sigaction(number, &before, &after), 0);
    EXPECT_EQ(after.sa_handler, theirs.sa_handler) << "it was not put back";
}

// --- Stopped again and again in the middle of something. Each returns whether the result was
// right. ---

bool allocate(unsigned salt) {
    std::vector<std::pair<unsigned char*, std::size_t>> all;
    bool right = true;
    for (unsigned i = 0; i < 200; ++i) {
        const std::size_t bytes = 1 + (i * 2654435761U + salt) % 5000;
        auto* at = static_cast<unsigned char*>(std::malloc(bytes));
        std::memset(at, static_cast<int>(salt + i), bytes);
        all.emplace_back(at, bytes);
    }
    for (unsigned i = 0; i < all.size(); ++i) {
        const auto [at, bytes] = all[i];
        right = right && at[0] == static_cast<unsigned char>(salt + i) &&
                at[bytes - 1] == static_cast<unsigned char>(salt + i);
        std::free(at);
    }
    return right;
}

std::FILE* sink;

bool print(unsigned salt) {
    char text[200];
    bool right = true;
    for (unsigned i = 0; i < 50; ++i) {
        const int n = std::snprintf(text, sizeof text, "%u %.3f %s", salt + i, i / 8.0, "words");
        right = right && n > 0 && std::atoi(text) == static_cast<int>(salt + i) &&
                std::strcmp(text + n - 5, "words") == 0;
        right = right && std::fprintf(sink, "%s\n", text) == n + 1;
    }
    return right;
}

bool strings(unsigned salt) {
    std::map<std::string, std::string> all;
    for (unsigned i = 0; i < 60; ++i)
        all[std::to_string(salt + i)] = std::string(i * 3, 'a') + std::to_string(i);
    std::string sum;
    for (const auto& [key, value] : all) sum += value;
    std::size_t expected = 0;
    for (unsigned i = 0; i < 60; ++i) expected += i * 3 + (i < 10 ? 1 : 2);
    return sum.size() == expected;
}

bool numbers(unsigned salt) {
    auto once = [salt] {
        double x = 1 + salt % 7;
        long double y = x;
        for (int i = 1; i < 3000; ++i) {
            x = std::sqrt(x * x + std::sin(x) * 1e-3) + 1.0 / i;
            y = y * 1.0000001L + 1.0L / static_cast<long double>(i);
        }
        return std::pair{x, y};
    };
    const auto a = once();
    const auto b = once();
    return a == b;
}

// All vector and mask registers, kept over a long loop.
[[gnu::target("avx512f,avx512bw")]] bool wide(unsigned salt) {
    __m512i all[24];
    for (int i = 0; i < 24; ++i) all[i] = _mm512_set1_epi32(static_cast<int>(salt) + i);
    const __m512i one = _mm512_set1_epi32(1);
    for (int round = 0; round < 2000; ++round)
        for (auto& each : all) {
            each = _mm512_add_epi32(each, one);
            asm volatile("" : "+v"(each));
        }
    bool right = true;
    for (int i = 0; i < 24; ++i) {
        const auto mask =
            _mm512_cmpeq_epi32_mask(all[i], _mm512_set1_epi32(static_cast<int>(salt) + i + 2000));
        right = right && mask == 0xffff;
    }
    return right;
}

bool copies(unsigned salt) {
    std::vector<unsigned> from(40'000), to(40'000);
    std::iota(from.begin(), from.end(), salt);
    std::memcpy(to.data(), from.data(), from.size() * sizeof from[0]);
    return to == from;
}

bool exceptions(unsigned salt) {
    int caught = 0;
    for (unsigned i = 0; i < 20; ++i) try {
            const std::string held(salt % 90, 'x');
            throw std::runtime_error{std::to_string(salt + i)};
        } catch (const std::runtime_error& e) {
            caught += std::atoi(e.what()) == static_cast<int>(salt + i);
        }
    return caught == 20;
}

void stop_in_the_middle(ums::options options) {
    std::uint64_t wanted = 300;
    if (const char* given = std::getenv("TEST_PREEMPTIONS"))
        wanted = std::strtoull(given, nullptr, 10);
    options.time_slice_us = 200;
    sink = std::fopen("/dev/null", "w");
    ASSERT_NE(sink, nullptr);
    ums::run(options, [wanted] {
        const bool has_wide =
            __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
        std::atomic<std::uint64_t> wrong[7]{}, done = 0;
        std::atomic<bool> over = false;
        ums::mutex lock;
        std::uint64_t under_lock = 0, locked = 0;
        std::vector<ums::fiber> all;
        for (unsigned f = 0; f < 12; ++f)
            all.emplace_back([&, f] {
                for (unsigned i = f; !over.load(std::memory_order_relaxed); i += 12) {
                    switch (i / 12 % 7) {
                        case 0:
                            wrong[0] += !allocate(i);
                            break;
                        case 1:
                            wrong[1] += !print(i);
                            break;
                        case 2:
                            wrong[2] += !strings(i);
                            break;
                        case 3:
                            wrong[3] += !numbers(i);
                            break;
                        case 4:
                            wrong[4] += has_wide && !wide(i);
                            break;
                        case 5:
                            wrong[5] += !copies(i);
                            break;
                        default:
                            wrong[6] += !exceptions(i);
                    }
                    done.fetch_add(1, std::memory_order_relaxed);
                    if (i % 5 == 0) {
                        const std::lock_guard guard{lock};
                        ++under_lock;
                        ++locked;
                    }
                }
            });
        while (ums::stats().preemptions < wanted) ums::this_fiber::yield();
        over = true;
        for (auto& one : all) one.join();
        for (int i = 0; i < 7; ++i) EXPECT_EQ(wrong[i], 0U) << "kind " << i;
        EXPECT_EQ(under_lock, locked);
        const auto s = ums::stats();
        std::cout << s.preemptions << " preemptions, " << s.stops << " stops in " << done
                  << " pieces of work, peak of " << s.carriers_peak << " carriers"
                  << (has_wide ? "\n" : ", no AVX-512 here\n");
    });
    std::fclose(sink);
}

TEST_F(preemption_test, what_a_fiber_is_in_the_middle_of_comes_out_right) {
    stop_in_the_middle(on(2));
}

// Nothing is put off here. So a stopped fiber may hold the locks of malloc, of stdio and of the
// loader, and the others wait for them in the kernel.
TEST_F(preemption_test, so_it_does_when_the_fiber_is_in_the_middle_of_the_c_library) {
    struct never_put_off {
        const unsigned before = std::exchange(ums::sched::stop::most_deferrals, 0);
        ~never_put_off() { ums::sched::stop::most_deferrals = before; }
    } const at_once;
    stop_in_the_middle(on(2));
}

using undetected_test = conserving_test;

// A stopped fiber may hold a lock, such as malloc's, on which another fiber then blocks its
// processor.
TEST_F(undetected_test, time_slices_are_refused) {
    const ums::options off{.processors = 1, .block = ums::block_detection::off};
    ums::options sliced = off;
    sliced.time_slice_us = 1000;
    auto error_of = [](auto starts) { return ::error_of(starts, "ums: time_slice_us: "); };
    EXPECT_EQ(error_of([&] { ums::run(sliced, [] {}); }), std::errc::operation_not_supported);
    ums::run(off, [&] {
        EXPECT_EQ(error_of([] { ums::cluster{{.time_slice_us = 1000}}; }),
                  std::errc::operation_not_supported);
        EXPECT_NE(ums::info().find("signal: none: "), std::string::npos);
        EXPECT_EQ(error_of([] { ums::cluster{{.time_slice_us = 0}}; }), std::errc{});
    });
}

}  // namespace
