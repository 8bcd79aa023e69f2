// SPDX-License-Identifier: MIT
#pragma once

// mem/overflow.hpp: the report of a stack overflow.
//
// A SIGSEGV (or SIGBUS) whose address lies in a guard prints which stack it belongs to and a backtrace, on
// the carrier's alternate signal stack, and then the program dies as the signal would have made it.
// Other faults, and SIGILL, SIGFPE and SIGABRT, go to the handler that was there before, after a report of the upper
// layers' (sched/crash.hpp).

#include "mem/slab.hpp"

namespace ums::mem {

// Writes who owns a stack; returns where that was made, or null. Async-signal-safe.
using describe_stack_fn = const void* (*)(const stack_head& head, char* buffer,
                                   unsigned long size) noexcept;

// What else is done about a signal that is about to end the program. Async-signal-safe.
struct last_words {
    // Of any of the signals but an overflow, before the application's handler or the default action.
    void (*report)(int number) noexcept = nullptr;
    // After the report of either.
    void (*dump)() noexcept = nullptr;
};

// Installs the handlers. Idempotent. Remembers the application's.
void install_overflow_report(describe_stack_fn describe, const last_words& more) noexcept;

// Puts the application's handlers back, unless somebody has replaced ours since.
void remove_overflow_report() noexcept;

}  // namespace ums::mem
