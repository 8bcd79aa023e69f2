// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/bench/bench.hpp: `ums bench`.

#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace tool {

// As on the command line.
struct bench_request {
    std::optional<std::string> name;
    std::optional<std::string> json, html;
    std::optional<std::string> processors, fibers, yields, repetitions, runtimes, detectors;
    std::optional<std::string> connections, pipeline, client, ways, rates;
    bool quick = false;
    bool cycles = false;
    std::string command_line;  // For the report.
};

// Adds the name of the bench and the options to `command`.
void add_bench(CLI::App& command, bench_request& asked);

// Checks the request, runs the benches, writes the results. Returns the exit code: 1 if a cell of
// ums failed. Throws usage_error before anything has run, and interrupted after Ctrl-C.
int bench(const bench_request& asked);

}  // namespace tool
