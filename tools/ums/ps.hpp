// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/ps.hpp: `ums ps`: the fibers of a process, one line each.

#include <cstddef>
#include <string>

namespace CLI {
class App;
}

namespace tool {

struct ps_request {
    std::string target;  // A process's number or a core file.
    std::string states, waits, cluster, match, sort = "id";
    std::size_t top = 0;  // 0: all.
    bool counts = false, json = false, stop = false;
};

void add_ps(CLI::App& app, ps_request& asked);
int ps(const ps_request& asked);

}  // namespace tool
