// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/slow.hpp: `ums slow`: tells of each fiber that runs longer than a limit before it
// switches, with its stack.
//
// It reads a few words of each processor several times within the limit. A processor whose number
// of switches stays the same runs the same fiber all the while. What counts is the CPU time of the
// kernel thread, so that a fiber is not blamed for the time in which other programs had the CPU.
// The process does not notice, except that a thread is stopped for some microseconds when its fiber
// is told of.

#include <string>

namespace CLI {
class App;
}

namespace tool {

struct slow_request {
    std::string target;  // A process's number.
    double over_ms = 10;
    double for_s = 0;  // 0: until the process ends, or a signal comes.
};

void add_slow(CLI::App& app, slow_request& asked);
int slow(const slow_request& asked);

}  // namespace tool
