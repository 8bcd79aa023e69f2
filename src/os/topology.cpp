// SPDX-License-Identifier: MIT
#include "os/topology.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sched.h>
#include <unistd.h>

namespace ums::os {

namespace {

// Whether `cpu` is in a kernel list such as "0-3,8".
bool list_has(const char* list, int cpu) noexcept {
    while (*list != 0) {
        char* end = nullptr;
        const long first = std::strtol(list, &end, 10);
        if (end == list) return false;
        long last = first;
        if (*end == '-') last = std::strtol(end + 1, &end, 10);
        if (cpu >= first && cpu <= last) return true;
        list = *end == ',' ? end + 1 : end;
        if (*list == '\n') break;
    }
    return false;
}

// Whether both CPUs share the cache `index` of the kernel's numbering (3 is the last level of most).
bool share_cache(int a, int b, int index) noexcept {
    char path[96];
    std::snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cache/index%d/shared_cpu_list",
                  a, index);
    std::FILE* file = std::fopen(path, "re");
    if (file == nullptr) return false;
    char list[512] = "";
    const bool read = std::fgets(list, sizeof list, file) != nullptr;
    std::fclose(file);
    return read && list_has(list, b);
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

int cpu_distance(int a, int b) noexcept {
    if (a == b) return 0;
    if (share_cache(a, b, 2)) return 1;
    return share_cache(a, b, 3) ? 2 : 3;
}

}  // namespace ums::os
