// SPDX-License-Identifier: MIT
#include "machine.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/utsname.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <system_error>

#ifndef UMS_BUILD_TYPE
#define UMS_BUILD_TYPE "unknown"
#endif

namespace tool {

namespace {

// The value of the first line `key : value` in a file of /proc.
std::string value_of(const char* file, const std::string& key) {
    std::ifstream in{file};
    for (std::string line; std::getline(in, line);) {
        if (!line.starts_with(key)) continue;
        const auto colon = line.find(':');
        const auto first = line.find_first_not_of(" \t", colon + 1);
        if (colon != std::string::npos && first != std::string::npos) return line.substr(first);
    }
    return "";
}

std::string compiler() {
#if defined(__clang__)
    return fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
    return fmt::format("gcc {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

}  // namespace

std::vector<int> available_cpus() {
    // The kernel refuses a set smaller than its own, but does not say how large that is.
    for (int most = 1024;; most *= 2) {
        const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set{
            CPU_ALLOC(most), [](cpu_set_t* one) { CPU_FREE(one); }};
        if (sched_getaffinity(0, CPU_ALLOC_SIZE(most), set.get()) != 0) {
            if (errno == EINVAL && most < 1 << 20) continue;
            throw std::system_error{errno, std::generic_category(), "sched_getaffinity"};
        }
        std::vector<int> cpus;
        for (int cpu = 0; cpu < most; ++cpu)
            if (CPU_ISSET_S(cpu, CPU_ALLOC_SIZE(most), set.get())) cpus.push_back(cpu);
        return cpus;
    }
}

std::uint64_t available_memory() {
    return std::strtoull(value_of("/proc/meminfo", "MemAvailable").c_str(), nullptr, 10) * 1024U;
}

machine this_machine() {
    utsname system{};
    uname(&system);
    auto cpu = value_of("/proc/cpuinfo", "model name");
    if (cpu.empty()) cpu = system.machine;
    return {cpu, static_cast<unsigned>(available_cpus().size()), system.release, compiler(),
            UMS_BUILD_TYPE};
}

}  // namespace tool
