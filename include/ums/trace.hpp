// SPDX-License-Identifier: MIT
#pragma once

// ums/trace.hpp: marks of the program's own in a trace.
//
// `ums trace` records what fibers do, from outside and without code in the program
// (docs/look-inside.md). A mark adds what only the program knows: a request, a phase, a decision.
//
// Blocking:  never. May be called from fibers and plain threads, with or without a runtime, but
//            not from a signal handler.
// Lifetime:  the text is copied.
// Errors:    none. A mark is dropped while nobody traces, and where there is no memory for a ring.
// Cost:      while nobody traces, a call, a load and a branch. Else some 20 ns for each 16 bytes in
//            a fiber; a plain thread takes a lock that such threads share.

#include <string_view>

#include "ums/export.hpp"

namespace ums {

// Adds a mark to the trace of the calling fiber. Up to 64 bytes of the text are kept.
UMS_EXPORT void trace_event(std::string_view text) noexcept;

}  // namespace ums
