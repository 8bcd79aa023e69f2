// SPDX-License-Identifier: MIT
#include "os/thread/thread_cpu.hpp"

#include <atomic>
#include <sched.h>
#include <thread>

#include <gtest/gtest.h>

#include "os/cpu/topology.hpp"
#include "os/thread/placement.hpp"
#include "support/conservation.hpp"

namespace {

using ums::os::thread_cpu;

class thread_cpu_test : public conserving_test {};

TEST_F(thread_cpu_test, names_the_cpu_that_a_thread_is_confined_to) {
    thread_cpu cpu;
    EXPECT_EQ(cpu.get(), -1) << "nobody has begun";
    for (unsigned n = 0; n < ums::os::usable_cpus(); ++n) {
        std::atomic<bool> may_end{false};
        std::atomic<int> step{0};
        int only = -1;
        std::thread t{[&] {
            only = ums::os::pin_this_thread(n);
            cpu.begin();
            step = 1;
            step.notify_all();
            may_end.wait(false);
            cpu.end();
        }};
        step.wait(0);
        const int seen = cpu.get();
        may_end = true;
        may_end.notify_all();
        t.join();
        EXPECT_EQ(cpu.get(), -1) << "its thread has ended";
        if (seen == -1) GTEST_SKIP() << "the C library registers no rseq area";
        EXPECT_EQ(seen, only);
    }
}

TEST_F(thread_cpu_test, a_thread_that_has_an_area_gets_no_second_one) {
    thread_cpu cpu;
    std::thread{[&] {
        cpu.begin();
        const bool has_one = cpu.get() != -1;
        cpu.end();
        cpu.begin_own();
        EXPECT_EQ(cpu.get() == -1, has_one);
        cpu.end();
        EXPECT_EQ(cpu.get(), -1);
    }}.join();
}

TEST_F(thread_cpu_test, a_thread_placed_on_a_cpu_wakes_there_and_gets_its_mask_back) {
    cpu_set_t before;
    ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
    if (CPU_COUNT(&before) < 2) GTEST_SKIP() << "one CPU";
    const int cpu = ums::os::nth_usable_cpu(1);
    ums::os::placement place;
    std::atomic<int> tid{0};
    std::atomic<bool> go{false};
    int woke_on = -1;
    cpu_set_t after;
    std::thread t{[&] {
        tid = ::gettid();
        tid.notify_all();
        go.wait(false);
        woke_on = ::sched_getcpu();
        place.end();
        ::sched_getaffinity(0, sizeof after, &after);
    }};
    tid.wait(0);
    place.begin(tid, cpu);
    go = true;
    go.notify_all();
    t.join();
    EXPECT_EQ(woke_on, cpu);
    EXPECT_TRUE(CPU_EQUAL(&after, &before));
}

}  // namespace
