// SPDX-License-Identifier: MIT
// variants: nomembarrier
#include "block/monitor_detector.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <gtest/gtest.h>

#include "block/subject.hpp"
#include "os/failing_calls.hpp"
#include "os/membarrier.hpp"
#include "support/conservation.hpp"
#include "support/scale.hpp"

namespace {

using namespace ums;
using block::monitor_detector;
using block::notice;
using block::subject;
using block::watched_thread;

class monitor_detector_test : public conserving_test {
protected:
    monitor_detector_test() {
        const char* off = std::getenv("UMS_MEMBARRIER");
        os::enable_asymmetric_fence(off == nullptr || std::strcmp(off, "off") != 0);
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
    block::maker maker_;
};

void wait_asleep(const monitor_detector& detector) {
    while (!detector.is_asleep()) std::this_thread::yield();
}

TEST_F(monitor_detector_test, sleeps_while_nothing_is_of_interest) {
    monitor_detector detector;
    ASSERT_EQ(detector.start(maker_.tid()), "");
    {
        watched_thread t{maker_, detector, [&](subject&) { block(); }};
        wait_asleep(detector);
        const std::uint64_t before = detector.samples();
        // The one test that lets time pass: what it looks for is what happens in it.
        const timespec sample{0, 50'000'000};
        ::nanosleep(&sample, nullptr);
        EXPECT_EQ(detector.samples(), before);
        unblock();
    }
}

TEST_F(monitor_detector_test, is_woken_by_what_becomes_of_interest) {
    monitor_detector detector;
    ASSERT_EQ(detector.start(maker_.tid()), "");
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

TEST_F(monitor_detector_test, can_be_stopped_at_any_moment_and_started_again) {
    monitor_detector detector;
    for (int i = 0; i < 50; ++i) {
        ASSERT_EQ(detector.start(maker_.tid()), "");
        for (int k = 0; k < i; ++k) std::this_thread::yield();
        detector.stop();
    }
    ASSERT_EQ(detector.start(maker_.tid()), "");
    wait_asleep(detector);
    detector.stop();
}

TEST_F(monitor_detector_test, without_proc_it_does_not_start) {
    os::failing_calls failing;
    failing.fail(os::failing_calls::open_to_read, 1, ~std::uint64_t{0}, ENOENT);
    monitor_detector detector;
    EXPECT_EQ(detector.start(maker_.tid()), "/proc/self/task: No such file or directory");
}

TEST_F(monitor_detector_test, works_without_descriptors_to_spare) {
    os::failing_calls failing;
    monitor_detector detector;
    ASSERT_EQ(detector.start(maker_.tid()), "");
    failing.fail(os::failing_calls::open_to_read, 1, 1, EMFILE);  // The one that is kept.
    watched_thread t{maker_, detector,
                     [&](subject& self) { self.busy(detector, [&] { block(); }); },
                     [&](const notice&) { unblock(); }};
}

TEST_F(monitor_detector_test, works_where_proc_does_not_name_system_calls) {
    os::failing_calls failing;
    monitor_detector detector;
    ASSERT_EQ(detector.start(maker_.tid()), "");
    failing.fail(os::failing_calls::open_to_read, 1, 1, ENOENT);  // Then it is stat.
    std::atomic<int> why{-1};
    {
        watched_thread t{maker_, detector,
                         [&](subject& self) { self.busy(detector, [&] { block(); }); },
                         [&](const notice& what) {
                             why = static_cast<int>(what.why);
                             unblock();
                         }};
    }
    EXPECT_EQ(why, static_cast<int>(block::cause::unknown));
}

}  // namespace
