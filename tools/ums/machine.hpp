// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/machine.hpp: what the figures were measured on.

#include <cstdint>
#include <string>
#include <vector>

namespace tool {

struct machine {
    std::string cpu;
    unsigned cpus;  // That this process may use.
    std::string kernel;
    std::string compiler;
    std::string build;
};

machine this_machine();

// The CPUs this process may use, in order of number.
std::vector<int> available_cpus();

// What can be allocated without swapping, in bytes; 0 if the kernel does not say.
std::uint64_t available_memory();

}  // namespace tool
