// SPDX-License-Identifier: MIT

// ums-bench: `ums bench` without the rest of the command, for `make demo`: it takes less than half
// as long to build.

#include <CLI/CLI.hpp>

#include "../command.hpp"
#include "bench.hpp"

int main(int argc, char** argv) {
    tool::bench_request asked;
    CLI::App app{"ums-bench: measure ums beside its peers"};
    app.name("ums-bench");
    tool::add_bench(app, asked);
    asked.command_line = tool::command_line(argc, argv).insert(3, " bench");
    return tool::run_command(app, argc, argv, [&] { return tool::bench(asked); });
}
