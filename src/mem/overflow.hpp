// SPDX-License-Identifier: MIT
#pragma once

// mem/overflow.hpp: the report of a stack overflow.
//
// A SIGSEGV (or SIGBUS) whose address lies in a guard prints which stack it belongs to and a backtrace, on
// the carrier's alternate signal stack, and then the program dies as the signal would have made it.
// Other faults, and SIGILL, SIGFPE and SIGABRT, have the effect that they had before, after a report of the upper
// layers' (sched/crash.hpp). A handler of the program's, or of a sanitizer's, may go on with the program, so before it
// there is only a line.

#include "mem/slab.hpp"
#include "os/no_stop.hpp"

namespace ums::mem {

// Writes who owns a stack; returns where that was made, or null. Async-signal-safe.
using describe_stack_fn = const void* (*)(const stack_head& head, char* buffer,
                                   unsigned long size) noexcept;

// What else is done about a signal that is about to end the program. Async-signal-safe.
struct last_words {
    // Of any of the signals but an overflow, before the default action.
    void (*report)(int number) noexcept = nullptr;
    // The same, before the application's handler.
    void (*mention)(int number) noexcept = nullptr;
    // After the report of either.
    void (*dump)() noexcept = nullptr;
};

// While it lives, the calling thread may write the one report of a crash, if is_first(). It is not stopped meanwhile
// (os/no_stop.hpp). Async-signal-safe.
class crash_report {
public:
    // Waits while another thread writes its report, for 10 s at most: the caller is about to end the program.
    // has_words: the caller has something to report.
    explicit crash_report(bool has_words) noexcept;
    ~crash_report();
    crash_report(const crash_report&) = delete;
    crash_report& operator=(const crash_report&) = delete;

    // False: a report has been written, or the caller crashed in writing it, or has nothing to report.
    [[nodiscard]] bool is_first() const noexcept { return is_first_; }

private:
    const os::no_stop section_;
    bool is_first_ = false;
};

// Installs the handlers. Idempotent. Remembers the application's.
void install_overflow_report(describe_stack_fn describe, const last_words& more) noexcept;

// Puts the application's handlers back, unless somebody has replaced ours since.
void remove_overflow_report() noexcept;

}  // namespace ums::mem
