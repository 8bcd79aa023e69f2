// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/run/run.hpp: `ums run --trace PROGRAM`: would a program with kernel threads gain from
// fibers?
//
// The program is run as it is. Nothing is loaded into it and nothing stops it: the command looks at
// its threads from outside (looks.hpp), and the kernel's own counts are read at its end.

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tool {

struct run_request {
    bool trace = false, json = false;
    std::string into;                  // A file for the report; empty: standard error.
    std::string program;               // As CLI has it; also the first word of `command`.
    std::vector<std::string> command;  // The program and its arguments.
};

void add_run(CLI::App& app, run_request& asked);
// How many words of the command line are the command's own, the name of the program included. The
// words after them are the program's, whatever they look like.
int own_words_of_run(int argc, char** argv);
// Returns the program's exit code. If a signal ended the program, it ends the command, too.
int run(const run_request& asked);

}  // namespace tool
