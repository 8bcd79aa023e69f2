// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/inspect/stacks.hpp: the calls that fibers are in.

#include <span>
#include <string>
#include <vector>

#include "snapshot.hpp"
#include "unwinder.hpp"

namespace tool::inspect {

// Of each of the fibers, in their order. Those that run are stopped for some microseconds each,
// unless they are in a system call; one whose state has changed since the snapshot may show no
// frames.
[[nodiscard]] std::vector<call_stack> stacks_of(const snapshot& s,
                                                std::span<const std::uint32_t> fibers,
                                                unwinder& by);

// "function at file:line", a line a frame; the inlined ones say so.
[[nodiscard]] std::vector<std::string> lines_of(const call_stack& stack, symbols& names);

}  // namespace tool::inspect
