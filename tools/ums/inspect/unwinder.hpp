// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/inspect/unwinder.hpp: from a fiber's registers to its call stack.
//
// The rules of an address (its unwind tables, read by libdw) are looked up once and kept, because a
// hundred thousand fibers stand at a few dozen addresses.

#include <elfutils/libdw.h>

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
    ~unwinder();
    unwinder(const unwinder&) = delete;
    unwinder& operator=(const unwinder&) = delete;

    // Reads what is not in the copy from the process.
    [[nodiscard]] call_stack unwind(registers from, const stack_copy& copy);

private:
    struct rule {
        enum : unsigned char { undefined, same, expression } kind = same;
        Dwarf_Op storage[3];  // Room for what libdw may have to write down.
        Dwarf_Op* ops = nullptr;
        std::size_t count = 0;
    };
    struct plan {
        bool is_there = false;
        bool is_signal = false;
        Dwarf_Frame* frame = nullptr;
        Dwarf_Op* cfa = nullptr;
        std::size_t cfa_count = 0;
        rule rules[registers::count];
    };

    const plan& plan_for(address pc);
    [[nodiscard]] bool load(const stack_copy& copy, address at, std::uint64_t& value) const;
    [[nodiscard]] bool evaluate(const Dwarf_Op* ops, std::size_t count, const registers& r,
                                const stack_copy& copy, address cfa, std::uint64_t& result,
                                bool& is_value) const;
    // Steps one frame out. Returns false if that was the last frame, or if the next cannot be
    // found.
    [[nodiscard]] bool step(const plan& p, registers& r, const stack_copy& copy, bool& ended) const;

    const process& of_;
    symbols& tables_;
    std::unordered_map<address, plan> plans_;
};

}  // namespace tool::inspect
