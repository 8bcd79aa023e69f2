// SPDX-License-Identifier: MIT
#include "os/cpu/topology.hpp"

#include <algorithm>
#include <cerrno>
#include <sched.h>
#include <string>
#include <system_error>
#include <unistd.h>
#include <vector>

#include "os/cpu/cpu_choice.hpp"
#include "os/text_file.hpp"

namespace ums::os {

namespace {

// Returns the CPUs that share the cache `index` with `cpu`, in the kernel's numbering (on most
// machines 3 is the last level). Empty: there is no such cache, or this process has no descriptor
// left to look with; all that follows from it is a choice of CPUs that is a little worse.
std::vector<int> sharers(int cpu, int index, const std::string& root) try {
    const std::string list =
        first_line(root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cache/index" +
                   std::to_string(index) + "/shared_cpu_list");
    return parse_cpu_list(list).value_or(std::vector<int>{});
} catch (const std::system_error&) {
    return {};
}

bool share_cache(int a, int b, int index) {
    const std::vector<int> with_a = sharers(a, index, "");
    return std::binary_search(with_a.begin(), with_a.end(), b);
}

}  // namespace

unsigned usable_cpus() noexcept {
    cpu_set_t set;
    if (sched_getaffinity(getpid(), sizeof set, &set) != 0) return 1;
    const int n = CPU_COUNT(&set);
    return n > 0 ? static_cast<unsigned>(n) : 1;
}

int nth_usable_cpu(unsigned n) noexcept {
    cpu_set_t set;
    if (sched_getaffinity(getpid(), sizeof set, &set) != 0) return -1;
    n %= static_cast<unsigned>(CPU_COUNT(&set));
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        if (CPU_ISSET(cpu, &set) && n-- == 0) return cpu;
    return -1;
}

int pin_this_thread(unsigned n) noexcept {
    const int cpu = nth_usable_cpu(n);
    if (cpu < 0) return -1;
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(cpu, &only);
    return sched_setaffinity(0, sizeof only, &only) == 0 ? cpu : -1;
}

void confine_this_thread(std::span<const int> cpus) noexcept {
    if (cpus.empty()) return;
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int cpu : cpus) CPU_SET(static_cast<unsigned>(cpu), &set);
    sched_setaffinity(0, sizeof set, &set);
}

void unpin_this_thread() noexcept {
    cpu_set_t set;
    if (sched_getaffinity(getpid(), sizeof set, &set) == 0) sched_setaffinity(0, sizeof set, &set);
}

bool leave_cpus(const cpu_set_t& taken) noexcept {
    cpu_set_t mine, rest;
    if (sched_getaffinity(0, sizeof mine, &mine) != 0) return false;
    CPU_ZERO(&rest);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        if (CPU_ISSET(cpu, &mine) && !CPU_ISSET(cpu, &taken)) CPU_SET(cpu, &rest);
    if (CPU_COUNT(&rest) == 0 || sched_setaffinity(0, sizeof rest, &rest) != 0) return false;
    sched_setaffinity(0, sizeof mine, &mine);
    return true;
}

bool visit_all_cpus() noexcept {
    const int kept = errno;
    cpu_set_t mine;
    bool all = sched_getaffinity(0, sizeof mine, &mine) == 0;
    for (int cpu = 0; all && cpu < CPU_SETSIZE; ++cpu) {
        cpu_set_t only;
        CPU_ZERO(&only);
        CPU_SET(cpu, &only);
        bool is_there = false;
        // It tries again, because other code may change the mask at the same time.
        for (int tries = 0; !is_there && tries < 10; ++tries) {
            if (sched_setaffinity(0, sizeof only, &only) != 0) {
                // There is no such CPU, or it is off line, or not in the cpuset.
                is_there = errno == EINVAL;
                break;
            }
            is_there = sched_getcpu() == cpu;
        }
        all = is_there;
    }
    sched_setaffinity(0, sizeof mine, &mine);
    errno = kept;
    return all;
}

int cpu_distance(int a, int b) {
    if (a == b) return 0;
    if (share_cache(a, b, 2)) return 1;
    return share_cache(a, b, 3) ? 2 : 3;
}

int first_of_last_cache(int cpu, const std::string& root) {
    for (int index = 3; index >= 2; --index)
        if (const std::vector<int> all = sharers(cpu, index, root); !all.empty())
            return all.front();
    return -1;
}

}  // namespace ums::os
