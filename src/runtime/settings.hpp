// SPDX-License-Identifier: MIT
#pragma once

// runtime/settings.hpp: the options in force: what the program chose, overridden by the
// environment.

#include <string>
#include <vector>

#include "mem/guard.hpp"
#include "ums/options.hpp"

namespace ums::rt {

struct settings {
    options chosen;         // Includes the number of processors.
    mem::guard_kind guard;  // What `automatic` became.
    const char* guard_reason;
    std::string processors_reason;  // Why there are so many.
    bool is_number_asked = false;   // Of processors, by the program or the environment.
    std::vector<int> cpus = {};     // Those of the default cluster; none: any.
};

// Reads UMS_* and checks everything. If a variable does not parse, this ends the program with exit
// code 2. Throws std::system_error(invalid_argument) for an option out of range, or
// (operation_not_supported) for a guard that the kernel cannot make.
settings settle(const options& asked);

// Throws std::system_error(invalid_argument).
void check_slice(std::uint32_t us);

// How many processors make use of the process's CPUs and quotas, and why. `root`, and what it
// throws: see os/cpu/cpu_quota.hpp.
struct available {
    unsigned number;
    std::string reason;
};
available available_processors(const std::string& root);

// The CPUs that cluster_options::cpus names, in order; none: any. Throws std::system_error:
// invalid_argument, operation_not_supported if this process may not use one of them, or an error
// of os::read_text() if the process cannot look at the node's CPUs.
std::vector<int> choose_cpus(const std::string& wanted, unsigned processors);

}  // namespace ums::rt
