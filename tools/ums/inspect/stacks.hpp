// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/inspect/stacks.hpp: the call stacks of fibers.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "snapshot.hpp"
#include "unwinder.hpp"
#include "wait_words.hpp"

namespace tool::inspect {

// The stack of each of the fibers, in their order. Running fibers are stopped for some microseconds
// each, unless they are in a system call; a fiber whose state has changed since the snapshot may
// show no frames.
[[nodiscard]] std::vector<call_stack> stacks_of(const snapshot& s,
                                                std::span<const std::uint32_t> fibers,
                                                unwinder& by);

// The stack, from `begin` to `end`, of the fiber that a thread runs. The thread is stopped for some
// microseconds, unless it is in a system call. No frames if `is_still`, which is asked while it is
// stopped, says that it has switched.
[[nodiscard]] call_stack stack_of_running(const process& of,
                                          const std::optional<thread_state>& thread, address begin,
                                          address end, const std::function<bool()>& is_still,
                                          unwinder& by);

// Fibers with the same calls, which are in the same state and wait for the same kind of thing.
struct stack_group {
    call_stack stack;
    fiber_state state;
    wait waits;
    std::vector<std::uint32_t> fibers;
};

// The largest group first. With `each`, every fiber is a group of its own, in their order.
[[nodiscard]] std::vector<stack_group> grouped(const snapshot& s,
                                               std::span<const std::uint32_t> fibers,
                                               std::vector<call_stack> stacks, bool each);

// "12 fibers: parked, mutex: 3 4 5"; for one fiber, all that is known of its wait.
[[nodiscard]] std::string headline(const snapshot& s, const stack_group& g, descriptors& fds);

// "function at file:line", a line for each frame; inlined frames say so. Unless `whole`, the frames
// of libums before the program's first one and after its last are left out, with those of the
// standard library there.
[[nodiscard]] std::vector<std::string> lines_of(const call_stack& stack, symbols& names,
                                                bool whole = false);

}  // namespace tool::inspect
