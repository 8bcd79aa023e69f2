// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/command.hpp: what each program of this folder does with its command line.
//
// Exit codes: 0; 1 if something failed while running; 2 for an argument that cannot be used, with
// one line on stderr; 128 + signal if interrupted.

#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace tool {

// The command line of `ums`, from these words after its name on. Quoted as a shell would read it.
std::string command_line(int argc, char** argv);

// Parses the command line, then calls `act`, unless all is said already (--help). `act` returns an
// exit code, or throws. Returns the exit code, with a line on stderr if it is not 0.
int run_command(CLI::App& app, int argc, char** argv, const std::function<int()>& act);

// Returns the exit code when all is done; the output may still be on its way.
int printed();

}  // namespace tool
