// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/inspect/stacks.hpp: the calls that fibers are in.

#include <span>
#include <string>
#include <vector>

#include "snapshot.hpp"
#include "unwinder.hpp"
#include "wait_words.hpp"

namespace tool::inspect {

// Of each of the fibers, in their order. Those that run are stopped for some microseconds each,
// unless they are in a system call; one whose state has changed since the snapshot may show no
// frames.
[[nodiscard]] std::vector<call_stack> stacks_of(const snapshot& s,
                                                std::span<const std::uint32_t> fibers,
                                                unwinder& by);

// Fibers with the same calls, which are in the same state and wait for the same kind of thing.
struct stack_group {
    call_stack stack;
    fiber_state state;
    wait waits;
    std::vector<std::uint32_t> fibers;
};

// The largest group first. `each`: every fiber is a group of its own, in their order.
[[nodiscard]] std::vector<stack_group> grouped(const snapshot& s,
                                               std::span<const std::uint32_t> fibers,
                                               std::vector<call_stack> stacks, bool each);

// "12 fibers: parked, mutex: 3 4 5", or of one fiber all that is known of its wait.
[[nodiscard]] std::string headline(const snapshot& s, const stack_group& g, descriptors& fds);

// "function at file:line", a line a frame; the inlined ones say so.
[[nodiscard]] std::vector<std::string> lines_of(const call_stack& stack, symbols& names);

}  // namespace tool::inspect
