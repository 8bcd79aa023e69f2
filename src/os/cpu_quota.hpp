// SPDX-License-Identifier: MIT
#pragma once

// os/cpu_quota.hpp: how many CPUs' worth of time this process's control groups let it use.
//
// A quota is so many microseconds in each period, for all threads of a group together: cpu.max of
// cgroup version 2, cpu.cfs_quota_us and cpu.cfs_period_us of version 1. Each group up to the root
// may have one; the least counts. A cpuset needs no look: the kernel takes its CPUs out of the
// affinity mask (os/topology.hpp).

#include <string>

namespace ums::os {

struct cpu_quota {
    double cpus = 0;    // 0: there is none.
    std::string where;  // The file that says so.
};

// Under `root` in place of "/": for tests. What cannot be read is no quota.
cpu_quota find_cpu_quota(const std::string& root = "");

// How many processors make use of it: as many as it has CPUs, of which a part counts as one.
unsigned whole_cpus(const cpu_quota& quota, unsigned usable) noexcept;

}  // namespace ums::os
