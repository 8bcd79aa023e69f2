// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/machine.hpp: the machine that the figures were measured on.

#include <cstdint>
#include <string>
#include <vector>

namespace tool {

struct machine {
    std::string cpu;
    unsigned cpus;  // The CPUs that this process may use.
    std::string kernel;
    std::string compiler;
    std::string build;
};

machine this_machine();

// The CPUs this process may use, in order of number.
std::vector<int> available_cpus();

// How many bytes can be allocated without swapping; 0 if the kernel does not say.
std::uint64_t available_memory();

}  // namespace tool
