// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/top.hpp: `ums top`: a page that shows what a process does, again and again.

#include <cstddef>
#include <string>

namespace CLI {
class App;
}

namespace tool {

struct top_request {
    std::string target;  // A process's number.
    std::string match, by = "start", sort;
    double interval_s = 1;
    std::size_t count = 0;  // The number of pictures; 0: until it is ended.
    std::size_t rows = 20;  // The length of the list in a batch; 0: all.
    unsigned width = 120;   // The width of a batch.
    bool batch = false, json = false;
};

void add_top(CLI::App& app, top_request& asked);
int top(const top_request& asked);

}  // namespace tool
