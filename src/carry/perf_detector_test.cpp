// SPDX-License-Identifier: MIT
#include "carry/perf_detector.hpp"

#include <atomic>
#include <cstdlib>
#include <fcntl.h>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "internal/subject.hpp"
#include "internal/failing_calls.hpp"
#include "support/conservation.hpp"
#include "support/scale.hpp"

namespace {

using namespace ums;
using carry::notice;
using carry::perf_detector;
using carry::subject;
using carry::watched_thread;
using os::failing_calls;

class perf_detector_test : public conserving_test {
protected:
    void SetUp() override {
        const char* call = nullptr;
        if (const long error = os::try_switch_records(call); error != 0)
            GTEST_SKIP() << perf_detector::explain(call, error);
    }
};

void wait_readable(int fd) {
    char byte;
    while (::syscall(SYS_read, fd, &byte, 1) != 1) {
    }
}
void make_readable(int fd) {
    if (::write(fd, "x", 1) != 1) std::abort();
}

TEST_F(perf_detector_test, a_block_whose_record_was_refused_is_found) {
    int first[2], second[2];
    ASSERT_EQ(::pipe2(first, O_CLOEXEC), 0);
    ASSERT_EQ(::pipe2(second, O_CLOEXEC), 0);
    carry::thread_maker maker;
    perf_detector detector{1};  // One page holds 170 records.
    ASSERT_EQ(detector.start(maker.tid()), "");
    std::atomic<bool> is_reader_stuck{false}, may_go_on{false};
    {
        // The first one's notice keeps the reader until the rings are full.
        watched_thread stops_the_reader{
            maker, detector,
            [&](subject& self) { self.busy(detector, [&] { wait_readable(first[0]); }); },
            [&](const notice&) {
                is_reader_stuck = true;
                is_reader_stuck.notify_all();
                may_go_on.wait(false);
            }};
        is_reader_stuck.wait(false);
        stops_the_reader->deal();
        // Every thread below the root writes records: on each CPU more than there is room for.
        const long cpus = ::sysconf(_SC_NPROCESSORS_CONF);
        for (long cpu = 0; cpu < cpus; ++cpu)
            maker
                .make([cpu] {
                    cpu_set_t one;
                    CPU_ZERO(&one);
                    CPU_SET(static_cast<unsigned>(cpu), &one);
                    if (::sched_setaffinity(0, sizeof one, &one) != 0) return;
                    const timespec brief{0, 1000};
                    for (int i = 0; i < 400; ++i) ::syscall(SYS_nanosleep, &brief, nullptr);
                })
                .join();
        watched_thread blocks{maker, detector, [&](subject& self) {
                                  self.busy(detector, [&] { wait_readable(second[0]); });
                              }};
        may_go_on = true;
        may_go_on.notify_all();
        blocks->wait_told();
        EXPECT_GT(detector.overflows(), 0u);
        make_readable(first[1]);
        make_readable(second[1]);
    }
    for (const int fd : {first[0], first[1], second[0], second[1]}) ::close(fd);
}

TEST_F(perf_detector_test, does_not_listen_to_a_flood_and_finds_blocks_all_the_same) {
    int there[2], back[2], held[2];
    for (auto* ends : {there, back, held}) ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    carry::thread_maker maker;
    perf_detector detector;
    ASSERT_EQ(detector.start(maker.tid()), "");
    std::atomic<bool> is_over{false}, is_last{false};
    std::thread echo = maker.make([&] {
        for (;;) {
            wait_readable(there[0]);
            if (is_last) return;
            make_readable(back[1]);
        }
    });
    std::thread waits = maker.make([&] {
        while (!is_over) {
            make_readable(there[1]);
            wait_readable(back[0]);
        }
        is_last = true;
        make_readable(there[1]);
    });
    while (detector.lulls() < 2) std::this_thread::yield();
    {
        const int blocks = scaled(300, 50);
        std::atomic<std::uint64_t> waiting{0};
        watched_thread t{maker, detector,
                         [&](subject& self) {
                             for (int i = 0; i < blocks; ++i)
                                 self.busy(detector, [&] {
                                     waiting = self.activity();
                                     wait_readable(held[0]);
                                 });
                         },
                         [&](const notice& what) {
                             std::uint64_t waits_for = what.activity;
                             if (waiting.compare_exchange_strong(waits_for, 0))
                                 make_readable(held[1]);
                         }};
    }
    is_over = true;
    waits.join();
    echo.join();
    for (auto* ends : {there, back, held}) {
        ::close(ends[0]);
        ::close(ends[1]);
    }
}

TEST_F(perf_detector_test, an_idle_process_writes_no_records) {
    carry::thread_maker maker;
    perf_detector detector;
    ASSERT_EQ(detector.start(maker.tid()), "");
    std::promise<void> end;
    std::thread idle = maker.make([&] { end.get_future().wait(); });
    // They quiet down. The one test that lets time pass: what it looks for is what happens in it.
    std::uint64_t before = ~std::uint64_t{0};
    const timespec sample{0, 20'000'000};
    while (detector.records() != before) {
        before = detector.records();
        ::nanosleep(&sample, nullptr);
    }
    ::nanosleep(&sample, nullptr);
    EXPECT_EQ(detector.records(), before);
    end.set_value();
    idle.join();
}

TEST_F(perf_detector_test, notices_that_its_root_has_ended) {
    carry::thread_maker maker;
    perf_detector detector;
    ASSERT_EQ(detector.start(maker.tid()), "");
    EXPECT_TRUE(detector.works());
    maker.end();
    while (detector.works()) std::this_thread::yield();
}

TEST_F(perf_detector_test, sees_threads_of_threads_that_the_root_made) {
    int pipe[2];
    ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
    carry::thread_maker root;
    perf_detector detector;
    ASSERT_EQ(detector.start(root.tid()), "");
    std::unique_ptr<carry::thread_maker> below;
    root.make([&] { below = std::make_unique<carry::thread_maker>(); }).join();
    {
        watched_thread t{*below, detector, [&](subject& self) {
                             self.busy(detector, [&] { wait_readable(pipe[0]); });
                         }};
        t->wait_told();
        make_readable(pipe[1]);
    }
    below.reset();
    ::close(pipe[0]);
    ::close(pipe[1]);
}

TEST_F(perf_detector_test, can_be_started_by_the_root_itself) {
    int pipe[2];
    ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
    perf_detector detector;
    // The reader is made before the events, so it writes no records of itself, to read for ever.
    std::promise<std::string> started;
    std::thread starter{[&] {
        started.set_value(detector.start(carry::current_tid()));
        wait_readable(pipe[0]);
    }};
    EXPECT_EQ(started.get_future().get(), "");
    const timespec sample{0, 20'000'000};
    std::uint64_t before = ~std::uint64_t{0};
    while (detector.records() != before) {
        before = detector.records();
        ::nanosleep(&sample, nullptr);
    }
    make_readable(pipe[1]);
    starter.join();
    ::close(pipe[0]);
    ::close(pipe[1]);
}

TEST_F(perf_detector_test, every_refusal_is_explained_and_leaves_nothing) {
    carry::thread_maker maker;
    const struct {
        failing_calls::call call;
        int error;
        const char* says;
    } cases[] = {
        {failing_calls::perf_event_open, EACCES, "perf_event_open: Permission denied"},
        {failing_calls::perf_event_open, EPERM, "perf_event_open: Operation not permitted"},
        {failing_calls::perf_event_open, ENOSYS, "perf_event_open: Function not implemented"},
        {failing_calls::perf_event_open, EMFILE, "perf_event_open: Too many open files"},
        {failing_calls::perf_event_open, ENOMEM, "perf_event_open: Cannot allocate memory"},
        {failing_calls::perf_event_open, EINVAL, "perf_event_open: Invalid argument"},
        {failing_calls::perf_map, EPERM, "mmap of a perf ring: Operation not permitted"},
        {failing_calls::perf_map, ENOMEM, "mmap of a perf ring: Cannot allocate memory"},
        {failing_calls::perf_map, EINVAL, "mmap of a perf ring: Invalid argument"},
        {failing_calls::event_make, EMFILE, "eventfd: Too many open files"},
    };
    for (const auto& c : cases) {
        const std::set<std::string> before = conservation::fds();
        failing_calls failing;
        failing.fail(c.call, 1, ~std::uint64_t{0}, c.error);
        perf_detector detector;
        EXPECT_EQ(detector.start(maker.tid()).find(c.says), 0u) << c.says;
        EXPECT_EQ(conservation::fds(), before);
        // Not only the first CPU's.
        if (c.call == failing_calls::perf_event_open && ::sysconf(_SC_NPROCESSORS_CONF) > 1) {
            failing.fail(c.call, 2, 1, c.error);
            EXPECT_EQ(detector.start(maker.tid()).find(c.says), 0u) << c.says;
            EXPECT_EQ(conservation::fds(), before);
        }
        failing.heal();
        EXPECT_EQ(detector.start(maker.tid()), "");  // And it can be tried again.
    }
}

TEST_F(perf_detector_test, a_cpu_that_is_offline_is_passed_over) {
    if (::sysconf(_SC_NPROCESSORS_CONF) < 2) GTEST_SKIP() << "one CPU";
    carry::thread_maker maker;
    failing_calls failing;
    failing.fail(failing_calls::perf_event_open, 1, 1, ENODEV);
    perf_detector detector;
    EXPECT_EQ(detector.start(maker.tid()), "");
}

}  // namespace
