// SPDX-License-Identifier: MIT
#include "os/perf.hpp"

#include <cerrno>
#include <ctime>
#include <memory>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "internal/failing_calls.hpp"

namespace {

using namespace ums::os;

int current_tid() { return static_cast<int>(::syscall(SYS_gettid)); }

class switch_ring_test : public ::testing::Test {
protected:
    void SetUp() override {
        const char* call = nullptr;
        if (try_switch_records(call) != 0) GTEST_SKIP() << call << " is refused here";
        cpu_set_t first;
        CPU_ZERO(&first);
        CPU_SET(0, &first);
        ASSERT_EQ(::sched_getaffinity(0, sizeof before_, &before_), 0);
        if (::sched_setaffinity(0, sizeof first, &first) != 0) GTEST_SKIP() << "not on CPU 0";
    }
    void TearDown() override { ::sched_setaffinity(0, sizeof before_, &before_); }

    static std::vector<switch_record> drain(switch_ring& ring, bool& all) {
        std::vector<switch_record> found;
        all = ring.drain([&](const switch_record& r) { found.push_back(r); });
        return found;
    }
    // How often the thread gave its CPU up: a sleep that is over before it has begun does not.
    static long block(int times) {
        const long before = given_up();
        const timespec brief{0, 1000};
        for (int i = 0; i < times; ++i) ::syscall(SYS_nanosleep, &brief, nullptr);
        return given_up() - before;
    }
    static long given_up() {
        rusage now{};
        ::getrusage(RUSAGE_THREAD, &now);
        return now.ru_nvcsw;
    }

    const char* call_ = nullptr;
    cpu_set_t before_;
};

TEST_F(switch_ring_test, holds_a_record_of_each_switch) {
    switch_ring ring;
    // Between the blocks, too, the kernel may make the thread wait: a page fault for a lock.
    const long at_first = given_up();
    const nanoseconds begun = now();
    ASSERT_EQ(ring.open(current_tid(), 0, 16, call_), 0);
    const long at_least = block(100);
    EXPECT_GT(at_least, 0);
    bool all = false;
    const auto found = drain(ring, all);
    const long at_most = given_up() - at_first;
    EXPECT_TRUE(all);
    ASSERT_FALSE(found.empty());
    long blocked = 0, came_back = 0;
    // The kernel reads the clock of the records without its lock: it may step back a little.
    constexpr nanoseconds step = 1'000'000;
    for (const switch_record& r : found) {
        EXPECT_EQ(r.tid, current_tid());
        EXPECT_GE(r.when, begun - step);
        EXPECT_LE(r.when, now() + step);
        blocked += r.is_out && !r.is_preempted;
        came_back += !r.is_out;
    }
    EXPECT_GE(blocked, at_least);
    EXPECT_LE(blocked, at_most);
    EXPECT_GE(came_back, at_least);  // After each preemption, too.
    for (const switch_record& r : drain(ring, all)) EXPECT_GE(r.when, found.back().when);
}

TEST_F(switch_ring_test, goes_round_and_says_when_it_was_full) {
    switch_ring ring;
    const long at_first = given_up();
    ASSERT_EQ(ring.open(current_tid(), 0, 1, call_), 0);
    bool all = false;
    long blocked = 0, at_least = 0;
    // A few at a time: preemptions write records as well.
    for (int i = 0; i < 200; ++i) {
        at_least += block(5);
        for (const switch_record& r : drain(ring, all)) blocked += r.is_out && !r.is_preempted;
        EXPECT_TRUE(all);
    }
    EXPECT_GE(blocked, at_least);
    EXPECT_LE(blocked, given_up() - at_first);
    // There is room for 170 records; a block makes two.
    for (long n = 0; n < 200;) n += block(1);
    EXPECT_LE(drain(ring, all).size(), 170u);
    EXPECT_FALSE(all);
    while (block(1) == 0) {
    }
    static_cast<void>(drain(ring, all));  // The kernel's own note of the loss.
    while (block(1) == 0) {
    }
    EXPECT_FALSE(drain(ring, all).empty());
    EXPECT_TRUE(all);
}

TEST_F(switch_ring_test, takes_a_smaller_ring_where_little_may_be_locked) {
    for (const int error : {EPERM, ENOMEM}) {
        failing_calls failing;
        failing.fail(failing_calls::perf_map, 1, 3, error);
        switch_ring ring;
        ASSERT_EQ(ring.open(current_tid(), 0, 16, call_), 0);
        EXPECT_EQ(failing.made(failing_calls::perf_map), 4u);
        const long given_up = block(5);
        bool all = false;
        EXPECT_GE(drain(ring, all).size(), static_cast<std::size_t>(given_up));
    }
    failing_calls failing;
    failing.fail(failing_calls::perf_map, 1, ~std::uint64_t{0}, EPERM);
    switch_ring ring;
    EXPECT_EQ(ring.open(current_tid(), 0, 16, call_), -EPERM);
    EXPECT_EQ(failing.made(failing_calls::perf_map), 5u);
    EXPECT_EQ(ring.fd(), -1);
}

TEST_F(switch_ring_test, says_what_the_kernel_refused) {
    failing_calls failing;
    failing.fail(failing_calls::perf_event_open, 1, 1, EACCES);
    EXPECT_EQ(try_switch_records(call_), -EACCES);
    EXPECT_STREQ(call_, "perf_event_open");
    EXPECT_GT(perf_event_paranoid(), -1000);
}

}  // namespace
