// SPDX-License-Identifier: MIT

// This file, check_policy.cpp and its tests are all of the command that knows the library.
#include "info.hpp"

#include <fmt/format.h>
#include <ums/stats.hpp>
#include <ums/ums_scheduling.h>

#include "machine.hpp"

namespace tool {

std::string version() { return ums::version(); }

std::string info() {
    const auto on = this_machine();
    std::string text =
        fmt::format("ums {}\ncpu: {}\ncpus: {}\nkernel: {}\ncompiler: {}\nbuild: {}\n", version(),
                    on.cpu, on.cpus, on.kernel, on.compiler, on.build);
    text += ums::info();
    if (!text.ends_with('\n')) text += '\n';
    text += fmt::format("ums workers: {}\nums workers' blocking: {}\n", ums_scheduling_mode(),
                        ums_scheduling_detector());
    const std::string directory = ums_scheduling_stats_directory();
    text += directory.empty()
                ? "ums workers' statistics: off\n"
                : fmt::format(
                      "ums workers' statistics: {0}/PID/schedulers/N; by the Linux modules' names "
                      "{0}/PID/ums/SCHEDULER/schedulers/THREAD\n",
                      directory);
    return text;
}

}  // namespace tool
