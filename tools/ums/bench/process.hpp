// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/bench/process.hpp: runs a program to its end.
//
// The program gets a process group of its own, and the CPUs and environment that it is told; it
// dies with the command. Throws interrupted after Ctrl-C, and std::system_error if the kernel has
// no process to give.

#include <string>
#include <utility>
#include <vector>

namespace tool {

struct command {
    std::string program;  // A path.
    std::vector<std::string> args;
    std::vector<std::pair<std::string, std::string>> environment;  // Added to our own.
    std::vector<int> cpus;
    double timeout_s = 120;
};

struct outcome {
    std::string out;
    std::string err;
    int status = 0;  // The status that waitpid() returns.
    bool timed_out = false;
    double seconds = 0;
};

outcome run(const command& what);

}  // namespace tool
