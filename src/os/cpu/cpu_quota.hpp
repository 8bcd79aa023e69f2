// SPDX-License-Identifier: MIT
#pragma once

// os/cpu/cpu_quota.hpp: how many CPUs' worth of time this process's control groups let it use.
//
// A quota is a number of microseconds in each period, for all threads of a group together: cpu.max
// of cgroup version 2, cpu.cfs_quota_us and cpu.cfs_period_us of version 1. Each group up to the
// root may have one; the smallest counts. A cpuset needs no look, because the kernel takes its CPUs
// out of the affinity mask (os/cpu/topology.hpp).

#include <string>

namespace ums::os {

struct cpu_quota {
    double cpus = 0;    // 0: there is no quota.
    std::string where;  // The file with the quota.
};

// Finds the quota. Tests give a `root` in place of "/". A file that is not there, or that this
// process may not read, means no quota. Throws std::system_error if the process has no descriptor
// or memory left to look with (os/text_file.hpp).
cpu_quota find_cpu_quota(const std::string& root = "");

// How many processors make use of the quota: as many as it has CPUs, where a part of a CPU counts
// as one.
unsigned whole_cpus(const cpu_quota& quota, unsigned usable) noexcept;

}  // namespace ums::os
