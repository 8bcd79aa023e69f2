// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/profile.hpp: `ums profile`: where the fibers of a process spend their time.

#include <string>

namespace CLI {
class App;
}

namespace tool {

struct profile_request {
    std::string target;  // A process's number.
    std::string pprof, folded, html, kind = "all";
    double seconds = 10;
    double frequency = 99;  // How many times a second it looks at what is on a CPU.
};

void add_profile(CLI::App& app, profile_request& asked);
int profile(const profile_request& asked);

}  // namespace tool
