// SPDX-License-Identifier: MIT
#include "os/cpu/topology.hpp"

#include <sched.h>
#include <set>
#include <thread>

#include <gtest/gtest.h>

namespace {

using namespace ums::os;

std::set<int> affinity() {
    cpu_set_t set;
    EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
    std::set<int> cpus;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        if (CPU_ISSET(cpu, &set)) cpus.insert(cpu);
    return cpus;
}

TEST(topology, the_usable_cpus_are_those_of_the_affinity_mask) {
    const std::set<int> mask = affinity();
    ASSERT_EQ(usable_cpus(), mask.size());
    std::set<int> found;
    for (unsigned n = 0; n < usable_cpus(); ++n) found.insert(nth_usable_cpu(n));
    EXPECT_EQ(found, mask);
}

TEST(topology, the_numbers_of_usable_cpus_wrap_around) {
    const unsigned cpus = usable_cpus();
    for (unsigned n = 0; n < cpus; ++n) {
        EXPECT_EQ(nth_usable_cpu(n + cpus), nth_usable_cpu(n));
        EXPECT_EQ(nth_usable_cpu(n + 1'000 * cpus), nth_usable_cpu(n));
    }
}

TEST(topology, pinning_confines_the_calling_thread_and_no_other) {
    const std::set<int> before = affinity();
    for (unsigned n = 0; n < 2 * usable_cpus(); ++n) {
        const int expected = nth_usable_cpu(n);
        std::thread{[n, expected] {
            EXPECT_EQ(pin_this_thread(n), expected);
            EXPECT_EQ(affinity(), std::set<int>{expected});
            EXPECT_EQ(sched_getcpu(), expected);
        }}.join();
    }
    EXPECT_EQ(affinity(), before);
}

TEST(topology, who_leaves_cpus_keeps_its_mask) {
    if (usable_cpus() < 2) GTEST_SKIP() << "one CPU only";
    std::thread{[] {
        const std::set<int> before = affinity();
        pin_this_thread(1);
        cpu_set_t here;
        CPU_ZERO(&here);
        CPU_SET(nth_usable_cpu(1), &here);
        EXPECT_FALSE(leave_cpus(here)) << "pinned there";
        EXPECT_EQ(affinity(), std::set<int>{nth_usable_cpu(1)});
        unpin_this_thread();
        EXPECT_TRUE(leave_cpus(here));
        EXPECT_EQ(affinity(), before);
        for (const int cpu : before) CPU_SET(cpu, &here);
        EXPECT_FALSE(leave_cpus(here)) << "all are taken";
        EXPECT_EQ(affinity(), before);
    }}.join();
}

TEST(topology, a_cpu_is_nearest_to_itself_and_distances_are_symmetric) {
    for (const int a : affinity()) {
        EXPECT_EQ(cpu_distance(a, a), 0);
        for (const int b : affinity()) {
            if (a == b) continue;
            EXPECT_GE(cpu_distance(a, b), 1);
            EXPECT_LE(cpu_distance(a, b), 3);
            EXPECT_EQ(cpu_distance(a, b), cpu_distance(b, a));
        }
    }
    EXPECT_EQ(cpu_distance(0, 1'000'000), 3);
}

TEST(topology, all_cpus_are_visited_and_the_mask_stays) {
    std::thread{[] {
        ASSERT_GE(pin_this_thread(0), 0);
        const std::set<int> before = affinity();
        EXPECT_TRUE(visit_all_cpus());
        EXPECT_EQ(affinity(), before);
    }}.join();
}

}  // namespace
