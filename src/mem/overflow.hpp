// SPDX-License-Identifier: MIT
#pragma once

// mem/overflow.hpp: the report of a stack overflow.
//
// A SIGSEGV (or SIGBUS) whose address lies in a guard prints which stack it belongs to and a backtrace, on
// the carrier's alternate signal stack, and then the program dies as the signal would have made it.
// Other faults go to the handler that was there before.

#include "mem/slab.hpp"

namespace ums::mem {

// Writes who owns a stack; returns where that was made, or null. Async-signal-safe.
using describe_stack_fn = const void* (*)(const stack_head& head, char* buffer,
                                   unsigned long size) noexcept;

// Installs the handlers. Idempotent. Remembers the application's.
void install_overflow_report(describe_stack_fn describe) noexcept;

// Puts the application's handlers back, unless somebody has replaced ours since.
void remove_overflow_report() noexcept;

}  // namespace ums::mem
