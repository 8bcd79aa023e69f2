// SPDX-License-Identifier: MIT
#pragma once

// mem/overflow.hpp: the report of a stack overflow.
//
// For a SIGSEGV (or SIGBUS) whose address lies in a guard, the handler prints which stack it
// belongs to and a backtrace, on the carrier's alternate signal stack; then the program dies as the
// signal would have made it. Other faults, and SIGILL, SIGFPE and SIGABRT, have the effect that
// they had before, after a report of the upper layers (sched/report/crash.hpp). A handler of the
// program's, or of a sanitizer's, may let the program continue, so before it there is only a line.

#include "mem/slab.hpp"
#include "os/no_stop.hpp"

namespace ums::mem {

// Writes which fiber owns a stack; returns where that was made, or null. Async-signal-safe.
using describe_stack_fn = const void* (*)(const stack_head& head, char* buffer,
                                          unsigned long size) noexcept;

// What else to do about a signal that is about to end the program. Async-signal-safe.
struct last_words {
    // For any of the signals but an overflow, before the default action. `sp` is where the stack
    // pointer was, if the signal is a fault, else null.
    void (*report)(int number, const void* sp) noexcept = nullptr;
    // The same, before the application's handler.
    void (*mention)(int number) noexcept = nullptr;
    // After the report of either.
    void (*dump)() noexcept = nullptr;
};

// While this object lives and is_first() holds, the calling thread may write the one report of a
// crash. It is not stopped meanwhile (os/no_stop.hpp). Async-signal-safe.
class crash_report {
public:
    // Waits while another thread writes its report, for 10 s at most, because the caller is about
    // to end the program. `has_words` says that the caller has something to report.
    explicit crash_report(bool has_words) noexcept;
    ~crash_report();
    crash_report(const crash_report&) = delete;
    crash_report& operator=(const crash_report&) = delete;

    // Returns false if a report has been written, if the caller crashed while writing it, or if it
    // has nothing to report.
    [[nodiscard]] bool is_first() const noexcept { return is_first_; }

    // Writes the caller's stack and further places, each below its heading; null: none. Requires:
    // is_first().
    void write_calls(const void* start, const void* made_at) const noexcept;

private:
    const os::no_stop section_;
    bool is_first_ = false;
};

// Installs the handlers and remembers the application's. Idempotent.
void install_overflow_report(describe_stack_fn describe, const last_words& more) noexcept;

// Puts the application's handlers back, unless other code has replaced ours since.
void remove_overflow_report() noexcept;

}  // namespace ums::mem
