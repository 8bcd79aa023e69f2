// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/inspect/unwinder.hpp: from a fiber's registers to its call stack.
//
// The rules of an address (its unwind tables) are looked up once and kept, because a
// hundred thousand fibers stand at a few dozen addresses.

#include <span>
#include <unordered_map>
#include <vector>

#include "process.hpp"
#include "symbols.hpp"

namespace tool::inspect {

// The addresses of a stack's frames, innermost first. The first is where the fiber continues; each
// of the others follows a call.
struct call_stack {
    std::vector<address> frames;
    bool is_cut_off = false;  // The stack could not be followed to its end.

    friend bool operator==(const call_stack&, const call_stack&) = default;
    friend auto operator<=>(const call_stack&, const call_stack&) = default;
};

// Stack memory that was read before.
struct stack_copy {
    address begin = 0;
    std::span<const char> bytes;
};

class unwinder {
public:
    unwinder(const process& of, symbols& tables) : of_{of}, tables_{tables} {}
    unwinder(const unwinder&) = delete;
    unwinder& operator=(const unwinder&) = delete;

    // Reads what is not in the copy from the process.
    [[nodiscard]] call_stack unwind(registers from, const stack_copy& copy);

private:
    const unwind_plan& plan_for(address pc);
    [[nodiscard]] bool load(const stack_copy& copy, address at, std::uint64_t& value) const;
    [[nodiscard]] bool evaluate(std::span<const unwind_op> ops, const registers& r,
                                const stack_copy& copy, address cfa, std::uint64_t& result,
                                bool& is_value) const;
    // Steps one frame out. Returns false if that was the last frame, or if the next cannot be
    // found.
    [[nodiscard]] bool step(const unwind_plan& p, registers& r, const stack_copy& copy,
                            bool& ended) const;

    const process& of_;
    symbols& tables_;
    std::unordered_map<address, unwind_plan> plans_;
};

}  // namespace tool::inspect
