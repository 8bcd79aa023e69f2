// SPDX-License-Identifier: MIT
#include "os/cpu/cpu_quota.hpp"

#include <map>
#include <string>

#include <gtest/gtest.h>

#include "support/error_of.hpp"
#include "support/fake_root.hpp"
#include "support/no_descriptors.hpp"
#include "support/scale.hpp"

namespace {

using namespace ums::os;

const std::string unified = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";
const std::string old =
    "33 23 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
    "34 23 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";

cpu_quota found(const std::map<std::string, std::string>& files) {
    return find_cpu_quota(fake_root{files}.path);
}

TEST(cpu_quota, version_2_gives_the_least_on_the_way_to_the_root) {
    std::map<std::string, std::string> files{{"/proc/self/mountinfo", unified},
                                             {"/proc/self/cgroup", "0::/a/b\n"},
                                             {"/sys/fs/cgroup/a/b/cpu.max", "max 100000\n"}};
    EXPECT_EQ(found(files).cpus, 0);
    files["/sys/fs/cgroup/a/b/cpu.max"] = "150000 100000\n";
    EXPECT_DOUBLE_EQ(found(files).cpus, 1.5);
    files["/sys/fs/cgroup/a/cpu.max"] = "50000 100000\n";
    EXPECT_DOUBLE_EQ(found(files).cpus, 0.5);
    EXPECT_EQ(found(files).where, "/sys/fs/cgroup/a/cpu.max");
}

TEST(cpu_quota, version_1_gives_quota_over_period) {
    std::map<std::string, std::string> files{
        {"/proc/self/mountinfo", old},
        {"/proc/self/cgroup", "5:memory:/m\n4:cpu,cpuacct:/job\n"},
        {"/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n"},
        {"/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n"}};
    EXPECT_EQ(found(files).cpus, 0);
    files["/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us"] = "250000\n";
    EXPECT_DOUBLE_EQ(found(files).cpus, 2.5);
    EXPECT_EQ(found(files).where, "/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us");
}

TEST(cpu_quota, a_container_sees_its_own_folder_as_the_root) {
    EXPECT_DOUBLE_EQ(found({{"/proc/self/mountinfo",
                             "30 23 0:26 /docker/1 /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n"},
                            {"/proc/self/cgroup", "0::/docker/1/inner\n"},
                            {"/sys/fs/cgroup/inner/cpu.max", "max 100000\n"},
                            {"/sys/fs/cgroup/cpu.max", "200000 100000\n"}})
                         .cpus,
                     2);
}

TEST(cpu_quota, what_cannot_be_read_is_no_quota) {
    EXPECT_EQ(found({}).cpus, 0);
    for (const char* text :
         {"", "\n", "max\n", "0 100000\n", "100 0\n", "-5 100\n", "many 100000\n", "1 2 3\n"})
        EXPECT_EQ(found({{"/proc/self/mountinfo", unified + "\n-\nx - cgroup2\n"},
                         {"/proc/self/cgroup", "0\n0:\n0::/\n"},
                         {"/sys/fs/cgroup/cpu.max", text}})
                      .cpus,
                  0)
            << text;
}

TEST(cpu_quota, without_a_descriptor_it_is_not_taken_for_none) {
    if (under_asan) GTEST_SKIP() << "UBSan needs a descriptor";
    const fake_root root{{{"/proc/self/mountinfo", unified},
                          {"/proc/self/cgroup", "0::/\n"},
                          {"/sys/fs/cgroup/cpu.max", "200000 100000\n"}}};
    {
        const no_descriptors left;
        EXPECT_EQ(error_of([&] { find_cpu_quota(root.path); }), std::errc::too_many_files_open);
    }
    EXPECT_DOUBLE_EQ(find_cpu_quota(root.path).cpus, 2);
}

TEST(cpu_quota, a_long_table_of_mounts_is_read_to_its_end) {
    std::string mounts;
    for (int i = 0; i < 1'000; ++i) mounts += "31 23 0:27 / /mnt rw shared:5 - tmpfs tmpfs rw\n";
    EXPECT_DOUBLE_EQ(found({{"/proc/self/mountinfo", mounts + unified},
                            {"/proc/self/cgroup", "0::/\n"},
                            {"/sys/fs/cgroup/cpu.max", "200000 100000\n"}})
                         .cpus,
                     2);
}

TEST(cpu_quota, a_part_of_a_cpu_counts_as_one_and_the_mask_is_the_limit) {
    EXPECT_EQ(whole_cpus({}, 4), 4u);
    EXPECT_EQ(whole_cpus({0.5, ""}, 4), 1u);
    EXPECT_EQ(whole_cpus({1, ""}, 4), 1u);
    EXPECT_EQ(whole_cpus({1.01, ""}, 4), 2u);
    EXPECT_EQ(whole_cpus({3.5, ""}, 2), 2u);
    EXPECT_EQ(whole_cpus({100, ""}, 2), 2u);
}

}  // namespace
