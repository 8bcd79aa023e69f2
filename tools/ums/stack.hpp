// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/stack.hpp: `ums stack`: the call stacks of fibers, equal ones together.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tool {

struct stack_request {
    std::string target;  // A process's number or a core file.
    std::vector<std::uint64_t> fibers;
    std::string states, waits, cluster, match;
    std::size_t top = 0;  // 0: all.
    bool each = false, whole = false, locks = false, json = false, stop = false;
};

void add_stack(CLI::App& app, stack_request& asked);
int stack(const stack_request& asked);

}  // namespace tool
