// SPDX-License-Identifier: MIT
// variants: nomembarrier
#include "carry/detect/monitor_detector.hpp"

#include <cerrno>
#include <cstdlib>
#include <deque>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <string_view>

#include "internal/failing_calls.hpp"
#include "internal/subject.hpp"
#include "os/cpu/membarrier.hpp"
#include "os/cpu/topology.hpp"
#include "support/conservation.hpp"
#include "support/debug_words.hpp"
#include "support/scale.hpp"

namespace {

using namespace ums;
using carry::monitor_detector;
using carry::notice;
using carry::subject;
using carry::watched_thread;

class monitor_detector_test : public conserving_test {
protected:
    monitor_detector_test() {
        os::enable_asymmetric_fence(!has_debug_word("membarrier=off"));
        if (::pipe2(ends_, O_CLOEXEC) != 0) std::abort();
    }
    ~monitor_detector_test() override {
        ::close(ends_[0]);
        ::close(ends_[1]);
    }
    void block() const {
        char byte;
        while (::syscall(SYS_read, ends_[0], &byte, 1) != 1) {
        }
    }
    void unblock() const {
        if (::write(ends_[1], "x", 1) != 1) std::abort();
    }

    int ends_[2];
    carry::thread_maker maker_;
};

void wait_asleep(const monitor_detector& detector) {
    while (!detector.is_asleep()) std::this_thread::yield();
}

TEST_F(monitor_detector_test, sleeps_while_nothing_is_of_interest) {
    monitor_detector detector;
    ASSERT_EQ(detector.start(), "");
    {
        watched_thread t{maker_, detector, [&](subject&) { block(); }};
        wait_asleep(detector);
        const std::uint64_t before = detector.samples();
        // This is the one test that lets time pass: it checks what happens in that time.
        const timespec sample{0, 50'000'000};
        ::nanosleep(&sample, nullptr);
        EXPECT_EQ(detector.samples(), before);
        unblock();
    }
}

TEST_F(monitor_detector_test, is_woken_by_what_becomes_of_interest) {
    monitor_detector detector;
    ASSERT_EQ(detector.start(), "");
    const int rounds = scaled(8, 3);
    watched_thread t{maker_, detector,
                     [&](subject& self) {
                         for (int i = 0; i < rounds; ++i) {
                             wait_asleep(detector);
                             self.busy(detector, [&] { block(); });
                         }
                     },
                     [&](const notice&) { unblock(); }};
}

TEST_F(monitor_detector_test, a_short_run_that_is_over_wakes_it_only_if_it_came_late) {
    monitor_detector detector;
    ASSERT_EQ(detector.start(), "");
    watched_thread t{maker_, detector, [&](subject& self) {
                         for (int called_off = 0; called_off < 3;) {
                             wait_asleep(detector);
                             const std::uint64_t before = detector.samples();
                             const os::nanoseconds begun = os::now();
                             // Of one that comes soon after another, none may be called off.
                             if (const std::uint64_t look = self.begin_busy(detector); look != 0) {
                                 self.end_busy();
                                 detector.call_off(look);
                                 // Otherwise the machine was slow, and it was a long run; or the
                                 // detector was just going to sleep, and saw it.
                                 if (os::now() - begun > 1'000'000 || !detector.is_asleep() ||
                                     detector.samples() != before)
                                     continue;
                                 ++called_off;
                                 const timespec sample{0, 15'000'000};
                                 ::nanosleep(&sample, nullptr);
                                 EXPECT_EQ(detector.samples(), before);
                                 EXPECT_TRUE(detector.is_asleep());
                             } else {
                                 self.end_busy();
                                 const timespec pause{0, 12'000'000};
                                 ::nanosleep(&pause, nullptr);
                             }
                         }
                     }};
}

// It would take three samples after each of them, each a wake-up.
TEST_F(monitor_detector_test, short_runs_a_few_milliseconds_apart_wake_it_not_at_all) {
    monitor_detector detector;
    ASSERT_EQ(detector.start(), "");
    watched_thread t{maker_, detector, [&](subject& self) {
                         const timespec pause{0, 4'000'000};
                         for (int in_a_row = 0; in_a_row < 3;) {
                             wait_asleep(detector);
                             const os::nanoseconds before = os::now();
                             std::uint64_t look = self.begin_busy(detector);
                             self.end_busy();
                             if (look != 0) detector.call_off(look);
                             ::nanosleep(&pause, nullptr);
                             look = self.begin_busy(detector);
                             self.end_busy();
                             if (look != 0) detector.call_off(look);
                             // Otherwise the machine was slow.
                             if (look != 0 && os::now() - before < 10'000'000) ++in_a_row;
                         }
                     }};
}

// The block is over before the alarm comes, each time: what follows it must find it all the same.
TEST_F(monitor_detector_test, learns_that_rare_short_runs_block) {
    monitor_detector detector;
    ASSERT_EQ(detector.start(), "");
    std::atomic<bool> found{false};
    watched_thread t{maker_, detector,
                     [&](subject& self) {
                         const timespec blocks{0, 5'000'000}, pause{0, 30'000'000};
                         while (!found) {
                             const std::uint64_t look = self.begin_busy(detector);
                             ::nanosleep(&blocks, nullptr);
                             self.end_busy();
                             if (look != 0) detector.call_off(look);
                             ::nanosleep(&pause, nullptr);
                         }
                     },
                     [&](const notice&) { found = true; }};
}

// Else no test of what the monitor does at each look, such as to follow the CPUs that are allowed,
// would ever be made.
TEST_F(monitor_detector_test, looks_once_a_second_though_all_runs_are_short) {
    monitor_detector detector;
    ASSERT_EQ(detector.start(), "");
    watched_thread t{maker_, detector, [&](subject& self) {
                         wait_asleep(detector);
                         const std::uint64_t before = detector.samples();
                         while (detector.samples() == before) {
                             const std::uint64_t look = self.begin_busy(detector);
                             self.end_busy();
                             if (look != 0) detector.call_off(look);
                             const timespec pause{0, 12'000'000};
                             ::nanosleep(&pause, nullptr);
                         }
                     }};
}

// Only its notice ends the block.
TEST_F(monitor_detector_test, works_where_the_kernel_refuses_timers) {
    os::failing_calls failing;
    failing.fail(os::failing_calls::thread_timer_create, 1, 1, EPERM);
    monitor_detector detector;
    ASSERT_EQ(detector.start(), "");
    watched_thread t{maker_, detector,
                     [&](subject& self) {
                         wait_asleep(detector);
                         self.busy(detector, [&] { block(); });
                     },
                     [&](const notice&) { unblock(); }};
}

TEST_F(monitor_detector_test, can_be_stopped_at_any_moment_and_started_again) {
    monitor_detector detector;
    for (int i = 0; i < 50; ++i) {
        ASSERT_EQ(detector.start(), "");
        for (int k = 0; k < i; ++k) std::this_thread::yield();
        detector.stop();
    }
    ASSERT_EQ(detector.start(), "");
    wait_asleep(detector);
    detector.stop();
}

TEST_F(monitor_detector_test, without_proc_it_does_not_start) {
    os::failing_calls failing;
    failing.fail(os::failing_calls::open_to_read, 1, ~std::uint64_t{0}, ENOENT);
    monitor_detector detector;
    EXPECT_EQ(detector.start(), "/proc/self/task: No such file or directory");
}

TEST_F(monitor_detector_test, works_without_descriptors_to_spare) {
    os::failing_calls failing;
    monitor_detector detector;
    ASSERT_EQ(detector.start(), "");
    failing.fail(os::failing_calls::open_at, 1, 5, EMFILE);
    watched_thread t{maker_, detector,
                     [&](subject& self) { self.busy(detector, [&] { block(); }); },
                     [&](const notice&) { unblock(); }};
}

// Only its notice ends a block, so a block that the sentinel misses hangs the test.
TEST_F(monitor_detector_test, a_sentinel_finds_what_the_monitor_is_too_slow_for) {
    monitor_detector detector;
    ASSERT_EQ(detector.start(), "");
    const int cpu = os::nth_usable_cpu(0);
    std::atomic<std::uint64_t> noticed{0};
    const int rounds = scaled(50, 10);
    {
        watched_thread t{maker_, detector,
                         [&](subject& self) {
                             os::pin_this_thread(0);
                             for (int i = 0; i < rounds; ++i) self.busy(detector, [&] { block(); });
                         },
                         [&](const notice& what) {
                             // Once for each block, also if it was found on its way there (in a
                             // page fault): no part but the monitor repeats a notice.
                             if (noticed.exchange(what.activity) == what.activity) return;
                             if (what.free_cpu != -1) {
                                 EXPECT_EQ(what.free_cpu, cpu);
                             }
                             // From the first block on, which no other part can find. Not for
                             // ever: a sentinel may miss one as it goes to sleep.
                             monitor_detector::shortest = monitor_detector::longest =
                                 10'000'000'000;
                             unblock();
                         }};
    }
    monitor_detector::shortest = 20'000;
    monitor_detector::longest = 10'000'000;
    EXPECT_GE(detector.found_by_sentinels() + 2, static_cast<std::uint64_t>(rounds));
}

TEST_F(monitor_detector_test, a_load_costs_no_descriptor) {
    monitor_detector detector;
    ASSERT_EQ(detector.start(), "");
    const auto before = conservation::fds();
    std::deque<subject> all;
    for (int i = 0; i < 100; ++i) detector.add(all.emplace_back(carry::current_tid()));
    EXPECT_EQ(conservation::fds(), before);
    for (subject& one : all) detector.remove(one);
}

TEST_F(monitor_detector_test, works_where_proc_does_not_name_system_calls) {
    // For as long as the detector looks: a first look may find that the thread has not blocked yet.
    const os::failing_calls restores_the_table;
    os::system.open_at = [](int folder, const char* path) noexcept -> long {
        return std::string_view{path}.ends_with("/syscall")
                   ? -ENOENT
                   : os::kernel_calls.open_at(folder, path);
    };
    monitor_detector detector;
    ASSERT_EQ(detector.start(), "");
    std::atomic<int> why{-1};
    {
        watched_thread t{maker_, detector,
                         [&](subject& self) { self.busy(detector, [&] { block(); }); },
                         [&](const notice& what) {
                             why = static_cast<int>(what.why);
                             unblock();
                         }};
    }
    EXPECT_EQ(why, static_cast<int>(carry::cause::unknown));
}

}  // namespace
