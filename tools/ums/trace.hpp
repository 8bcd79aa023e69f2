// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/trace.hpp: `ums trace`: what the fibers of a process do, over time.

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tool {

struct trace_request {
    // A process's number; or "summary" and what to sum up; or a file.
    std::vector<std::string> words;
    std::vector<std::string> command;  // The words after --.
    std::string into;
    double seconds = 0, last = 0;  // 0: not given.
    std::uint64_t ring_bytes = 0;
    bool chrome = false, json = false, on = false, off = false;
};

void add_trace(CLI::App& app, trace_request& asked);
// Returns the exit code; with a command, the command's own.
int trace(const trace_request& asked);

}  // namespace tool
