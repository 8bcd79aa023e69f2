// SPDX-License-Identifier: MIT
#include "carry/detect/detector.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <iostream>
#include <linux/futex.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "carry/detect/monitor_detector.hpp"
#include "internal/subject.hpp"
#include "os/cpu/topology.hpp"
#include "support/conservation.hpp"
#include "support/seed.hpp"

namespace {

using namespace ums;
using carry::cause;
using carry::notice;
using carry::subject;
using carry::watched_thread;

struct pipe_pair {
    int ends[2];
    pipe_pair() {
        if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    }
    ~pipe_pair() {
        ::close(ends[0]);
        ::close(ends[1]);
    }
    pipe_pair(const pipe_pair&) = delete;
    pipe_pair& operator=(const pipe_pair&) = delete;
    void write() const {
        if (::write(ends[1], "x", 1) != 1) std::abort();
    }
    // Called by number, so that nothing in between can block elsewhere.
    void read() const {
        char byte;
        while (::syscall(SYS_read, ends[0], &byte, 1) != 1) {
        }
    }
};

// Gives a CPU something to do that touches no new memory and calls nothing.
void compute(int rounds) {
    for (volatile int i = 0; i < rounds;) i = i + 1;
}

class detector_test : public ::testing::Test {
protected:
    void SetUp() override {
        os::enable_asymmetric_fence(true);
        detector_ = std::make_unique<carry::monitor_detector>();
        const std::string problem = detector_->start();
        if (!problem.empty()) GTEST_SKIP() << problem;
    }
    void TearDown() override { detector_.reset(); }

    conservation nothing_left_;
    carry::thread_maker maker_;
    std::unique_ptr<carry::detector> detector_;
};

// Blocks by `wait` until the detector has reported it and `end` was called.
template <class Wait, class End>
notice found(carry::thread_maker& maker, carry::detector& by, Wait wait, End end) {
    watched_thread t{maker, by, [&](subject& self) { self.busy(by, wait); }};
    const notice what = t->wait_told();
    t->deal();
    end(t->tid());
    return what;
}

TEST_F(detector_test, finds_a_read_of_an_empty_pipe) {
    pipe_pair pipe;
    const notice what = found(
        maker_, *detector_, [&] { pipe.read(); }, [&](int) { pipe.write(); });
    EXPECT_EQ(what.why, cause::system_call);
    EXPECT_EQ(what.call, SYS_read);
    EXPECT_EQ(what.activity, 2u);
    EXPECT_LE(what.when, os::now());
    EXPECT_GT(what.when, os::now() - 60'000'000'000);
}

TEST_F(detector_test, finds_a_raw_nanosleep) {
    std::atomic<bool> is_over{false};
    const notice what = found(
        maker_, *detector_,
        [&] {
            const timespec brief{0, 5'000'000};
            while (!is_over) ::syscall(SYS_nanosleep, &brief, nullptr);
        },
        [&](int) { is_over = true; });
    EXPECT_EQ(what.why, cause::system_call);
    EXPECT_EQ(what.call, SYS_nanosleep);
}

TEST_F(detector_test, finds_a_futex) {
    std::atomic<std::uint32_t> word{0};
    const notice what = found(
        maker_, *detector_,
        [&] {
            while (word == 0) ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, nullptr);
        },
        [&](int) {
            word = 1;
            ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1);
        });
    EXPECT_EQ(what.why, cause::system_call);
    EXPECT_EQ(what.call, SYS_futex);
}

TEST_F(detector_test, tells_a_page_fault_from_a_system_call) {
    const int fd = static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY));
    if (fd < 0) GTEST_SKIP() << "userfaultfd: " << std::strerror(errno);
    uffdio_api api{UFFD_API, 0, 0};
    ASSERT_EQ(::ioctl(fd, UFFDIO_API, &api), 0);
    void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(page, MAP_FAILED);
    uffdio_register range{
        {reinterpret_cast<std::uint64_t>(page), 4096}, UFFDIO_REGISTER_MODE_MISSING, 0};
    ASSERT_EQ(::ioctl(fd, UFFDIO_REGISTER, &range), 0);
    const notice what = found(
        maker_, *detector_, [&] { *static_cast<volatile char*>(page) = 1; },
        [&](int) {
            uffdio_zeropage fill{{reinterpret_cast<std::uint64_t>(page), 4096}, 0, 0};
            EXPECT_EQ(::ioctl(fd, UFFDIO_ZEROPAGE, &fill), 0);
        });
    EXPECT_EQ(what.why, cause::page_fault);
    EXPECT_EQ(what.call, -1);
    ::munmap(page, 4096);
    ::close(fd);
}

// A file system in memory never blocks here, so there may be nothing to find.
TEST_F(detector_test, calls_a_slow_fsync_by_its_name) {
    char name[] = "fsync_test_XXXXXX";
    const int fd = ::mkstemp(name);
    ASSERT_GE(fd, 0);
    ::unlink(name);
    const std::vector<char> some(1 << 20, 'x');
    const int tries = scaled(20, 5);
    int told = 0;
    {
        watched_thread t{maker_, *detector_,
                         [&](subject& self) {
                             for (int i = 0; i < tries; ++i) {
                                 if (::pwrite(fd, some.data(), some.size(), 0) < 0) std::abort();
                                 self.busy(*detector_, [&] { ::syscall(SYS_fsync, fd); });
                             }
                         },
                         [&](const notice& what) {
                             ++told;
                             EXPECT_EQ(what.why, cause::system_call);
                             EXPECT_EQ(what.call, SYS_fsync);
                         }};
    }
    std::cout << "blocks in fsync: " << told << " found, in " << tries << " calls" << std::endl;
    ::close(fd);
}

TEST_F(detector_test, says_nothing_of_a_thread_that_computes) {
    watched_thread t{maker_, *detector_,
                     [&](subject& self) {
                         self.busy(*detector_, [] { compute(scaled(100'000'000, 20'000'000)); });
                     },
                     [](const notice& what) {
                         ADD_FAILURE() << "told of a thread that computes: " << what.call;
                     }};
}

TEST_F(detector_test, says_nothing_of_threads_that_are_preempted) {
    // Three threads that compute on one CPU: the kernel switches between them all the time.
    std::array<std::atomic<std::uint64_t>, 3> told{};
    std::deque<watched_thread> all;
    cpu_set_t first_cpu, allowed;
    ASSERT_EQ(::sched_getaffinity(0, sizeof allowed, &allowed), 0);
    CPU_ZERO(&first_cpu);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&first_cpu) == 0; ++cpu)
        if (CPU_ISSET(cpu, &allowed)) CPU_SET(cpu, &first_cpu);
    for (auto& count : told)
        all.emplace_back(
            maker_, *detector_,
            [&](subject& self) {
                ::sched_setaffinity(0, sizeof first_cpu, &first_cpu);
                self.busy(*detector_, [] { compute(scaled(60'000'000, 10'000'000)); });
            },
            [&](const notice&) { ++count; });
    all.clear();
    for (const auto& count : told) EXPECT_EQ(count, 0u);
}

TEST_F(detector_test, says_nothing_of_what_is_not_of_interest) {
    pipe_pair to, back;
    watched_thread t{maker_, *detector_,
                     [&](subject&) {
                         for (int i = 0; i < 100; ++i) {
                             to.read();
                             back.write();
                         }
                     },
                     [](const notice&) { ADD_FAILURE() << "told of an idle thread"; }};
    for (int i = 0; i < 100; ++i) {
        to.write();
        back.read();
    }
}

// Each thread blocks again and again: briefly, or until the detector itself ends the block. So a
// block that the detector misses hangs the test.
TEST_F(detector_test, finds_every_long_block_of_many_threads) {
    const std::uint64_t seed = test_seed();
    constexpr int threads = 12;
    const int rounds = scaled(150, 40);
    struct one {
        pipe_pair pipe;
        std::atomic<std::uint64_t> held{0};  // The activity whose block waits to be ended.
        std::atomic<int> ended{0};
    };
    std::deque<one> ones(threads);
    std::deque<watched_thread> all;
    int expected[threads] = {};
    for (int n = 0; n < threads; ++n) {
        one& mine = ones[static_cast<std::size_t>(n)];
        base::random choice{seed + static_cast<unsigned>(n)};
        std::vector<unsigned> plan;
        for (int i = 0; i < rounds; ++i) {
            plan.push_back(choice.below(2) != 0 ? choice.below(2'000'000) : 0);
            expected[n] += plan.back() == 0;
        }
        all.emplace_back(
            maker_, *detector_,
            [&, plan](subject& self) {
                for (const unsigned ns : plan) {
                    self.busy(*detector_, [&] {
                        if (ns == 0) {
                            mine.held = self.activity();
                            mine.pipe.read();
                        } else {
                            const timespec brief{0, static_cast<long>(ns)};
                            ::syscall(SYS_nanosleep, &brief, nullptr);
                        }
                    });
                }
            },
            [&](const notice& what) {
                std::uint64_t waits = what.activity;
                if (mine.held.compare_exchange_strong(waits, 0)) {
                    ++mine.ended;
                    mine.pipe.write();
                }
            });
    }
    all.clear();
    for (int n = 0; n < threads; ++n)
        EXPECT_EQ(ones[static_cast<std::size_t>(n)].ended, expected[n]);
}

TEST_F(detector_test, never_calls_what_has_been_removed) {
    constexpr int threads = 4;
    std::vector<std::thread> all;
    const int rounds = scaled(2'000, 300);
    for (int n = 0; n < threads; ++n) {
        all.push_back(maker_.make([&] {
            const timespec brief{0, 30'000};
            for (int i = 0; i < rounds; ++i) {
                std::atomic<bool> is_removed{false};
                subject self{carry::current_tid(),
                             [&](const notice&) { EXPECT_FALSE(is_removed); }};
                detector_->add(self);
                self.busy(*detector_, [&] { ::syscall(SYS_nanosleep, &brief, nullptr); });
                detector_->remove(self);
                is_removed = true;
            }
        }));
    }
    for (std::thread& t : all) t.join();
}

TEST_F(detector_test, a_removal_waits_for_the_call_that_runs) {
    pipe_pair pipe;
    std::atomic<bool> is_called{false}, has_returned{false};
    std::promise<int> tid;
    std::atomic<subject*> watched{nullptr};
    std::thread blocks = maker_.make([&] {
        tid.set_value(carry::current_tid());
        watched.wait(nullptr);
        watched.load()->busy(*detector_, [&] { pipe.read(); });
    });
    subject s{tid.get_future().get(), [&](const notice&) {
                  is_called = true;
                  is_called.notify_all();
                  for (int i = 0; i < 1000; ++i) ::sched_yield();
                  has_returned = true;
              }};
    detector_->add(s);
    watched = &s;
    watched.notify_all();
    is_called.wait(false);
    detector_->remove(s);
    EXPECT_TRUE(has_returned);
    pipe.write();
    blocks.join();
}

TEST_F(detector_test, how_long_a_notice_takes) {
    const int blocks = scaled(300, 50);
    pipe_pair pipe;
    std::vector<double> us;
    std::atomic<os::nanoseconds> begun{0};
    std::atomic<std::uint64_t> held{0};
    {
        watched_thread t{maker_, *detector_,
                         [&](subject& self) {
                             for (int i = 0; i < blocks; ++i) {
                                 self.busy(*detector_, [&] {
                                     compute(1'000'000);
                                     held = self.activity();
                                     begun = os::now();
                                     pipe.read();
                                 });
                             }
                         },
                         [&](const notice& what) {
                             std::uint64_t waits = what.activity;
                             if (!held.compare_exchange_strong(waits, 0)) return;
                             us.push_back(static_cast<double>(os::now() - begun) / 1000);
                             pipe.write();
                         }};
    }
    ASSERT_EQ(us.size(), static_cast<std::size_t>(blocks));
    std::sort(us.begin(), us.end());
    std::cout << "from the call to the notice, us: median " << us[us.size() / 2] << ", p90 "
              << us[us.size() * 9 / 10] << ", p99 " << us[us.size() * 99 / 100] << ", most "
              << us.back() << std::endl;
}

// Two threads that are not of interest wake each other in turn. Returns what each wait costs.
double ns_per_wait(carry::thread_maker& maker, int rounds) {
    pipe_pair there, back;
    std::thread echo = maker.make([&] {
        for (int i = 0; i < rounds; ++i) {
            there.read();
            back.write();
        }
    });
    os::nanoseconds took = 0;
    maker
        .make([&] {
            const os::nanoseconds begun = os::now();
            for (int i = 0; i < rounds; ++i) {
                there.write();
                back.read();
            }
            took = os::now() - begun;
        })
        .join();
    echo.join();
    return static_cast<double>(took) / rounds / 2;
}

TEST_F(detector_test, what_an_idle_wait_costs) {
    const int rounds = scaled(10'000, 1'000);
    const double with = ns_per_wait(maker_, rounds);
    carry::thread_maker unwatched;
    const double without = ns_per_wait(unwatched, rounds);
    std::cout << "a wait of a watched thread, ns: " << with << ", of others: " << without
              << std::endl;
}

}  // namespace
