// SPDX-License-Identifier: MIT
#include "os/cpu/cpu_choice.hpp"

#include <map>
#include <string>

#include <gtest/gtest.h>

#include "os/cpu/topology.hpp"
#include "support/error_of.hpp"
#include "support/fake_root.hpp"
#include "support/no_descriptors.hpp"
#include "support/scale.hpp"

namespace {

using namespace ums::os;
using cpus = std::vector<int>;

// Two nodes of four CPUs, each with one last-level cache.
std::map<std::string, std::string> two_nodes() {
    std::map<std::string, std::string> files{{"/sys/devices/system/node/node0/cpulist", "0-3\n"},
                                             {"/sys/devices/system/node/node1/cpulist", "4-7\n"}};
    for (int cpu = 0; cpu < 8; ++cpu)
        files["/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
              "/cache/index3/shared_cpu_list"] = cpu < 4 ? "0-3\n" : "4-7\n";
    return files;
}

const cpus all_eight{0, 1, 2, 3, 4, 5, 6, 7};

TEST(cpu_choice, the_usable_cpus_are_those_that_are_counted) {
    EXPECT_EQ(usable_cpu_list().size(), usable_cpus());
    EXPECT_EQ(usable_cpu_list().front(), nth_usable_cpu(0));
}

TEST(cpu_choice, a_list_has_numbers_and_ranges_each_cpu_once) {
    EXPECT_EQ(parse_cpu_list("3"), cpus{3});
    EXPECT_EQ(parse_cpu_list("0-3,8"), (cpus{0, 1, 2, 3, 8}));
    EXPECT_EQ(parse_cpu_list("8,1-2,2,0-1"), (cpus{0, 1, 2, 8}));
    for (const char* const wrong : {"", ",", "1,", ",1", "1-", "-1", "2-1", "1--2", "1 ", " 1",
                                    "0x1", "a", "1024", "99999999999", "+1", "0-3,"})
        EXPECT_FALSE(parse_cpu_list(wrong)) << wrong;
}

TEST(cpu_choice, a_node_has_the_cpus_that_the_kernel_names) {
    const fake_root root{two_nodes()};
    EXPECT_EQ(cpus_of_node("1", root.path), (cpus{4, 5, 6, 7}));
    EXPECT_EQ(cpus_of_node("2", root.path), cpus{});
    for (const char* const wrong : {"", "x", "-1", "1 ", "0,1"})
        EXPECT_FALSE(cpus_of_node(wrong, root.path)) << wrong;
}

TEST(cpu_choice, without_a_descriptor_a_node_is_not_taken_for_missing) {
    if (under_asan) GTEST_SKIP() << "UBSan needs a descriptor";
    const fake_root root{two_nodes()};
    const no_descriptors left;
    EXPECT_EQ(error_of([&] { (void)cpus_of_node("1", root.path); }),
              std::errc::too_many_files_open);
    // Any CPUs will do then.
    EXPECT_EQ(near_cpus(2, {2, 3, 4}, {}, root.path).size(), 2u);
}

TEST(cpu_choice, near_cpus_are_of_one_cache_if_one_has_as_many) {
    const fake_root root{two_nodes()};
    EXPECT_EQ(near_cpus(2, all_eight, {}, root.path), (cpus{0, 1}));
    EXPECT_EQ(near_cpus(4, {1, 2, 3, 4, 5, 6, 7}, {}, root.path), (cpus{4, 5, 6, 7}));
    // Takes the smaller one that suffices.
    EXPECT_EQ(near_cpus(2, {0, 1, 2, 3, 5, 6}, {}, root.path), (cpus{5, 6}));
    // More than either has, so all of the larger one come first.
    EXPECT_EQ(near_cpus(5, {2, 3, 4, 5, 6, 7}, {}, root.path), (cpus{4, 5, 6, 7, 2}));
    // There are not that many.
    EXPECT_EQ(near_cpus(9, all_eight, {}, root.path).size(), 8u);
}

TEST(cpu_choice, near_cpus_keep_off_those_that_are_taken) {
    const fake_root root{two_nodes()};
    EXPECT_EQ(near_cpus(2, all_eight, {0, 1}, root.path), (cpus{2, 3}));
    EXPECT_EQ(near_cpus(3, all_eight, {0, 1}, root.path), (cpus{4, 5, 6}));
    // All are taken, so it begins again.
    EXPECT_EQ(near_cpus(2, all_eight, all_eight, root.path), (cpus{0, 1}));
}

TEST(cpu_choice, where_the_kernel_says_nothing_of_caches_any_cpus_do) {
    const fake_root root{{}};
    EXPECT_EQ(near_cpus(3, all_eight, {0}, root.path), (cpus{1, 2, 3}));
}

}  // namespace
