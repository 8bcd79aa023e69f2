// SPDX-License-Identifier: MIT
#pragma once

// arch/backtrace.hpp: the return addresses of a side that does not run.
//
// A small assembly routine calls the unwinder on the caller's own stack. Its unwind table says that
// it was called by the side whose registers the context holds: the frame above it has that stack
// pointer, instruction pointer and frame pointer. The other callee-saved registers were clobbers of
// the switch, so the frames of that side have them on their stack. Nothing runs on the other stack
// and no instrumented code reads it, so this works under the sanitizers too.

#include <cstddef>

#include "arch/context.hpp"

namespace ums::arch {

// Innermost first; returns how many. The first is where the side will continue. Requires: the side
// has run, does not run now, and does not run during the call.
std::size_t backtrace(const context& of, const void** addresses, std::size_t most) noexcept;

}  // namespace ums::arch
