// SPDX-License-Identifier: MIT
#pragma once

// sched/crash.hpp: which fiber a fatal signal or std::terminate() has hit.
//
// The report says the fiber's id and name, who made it and where, its start function, and the calls
// it is in. Then the default action goes on, or the program's terminate handler: the exit is the
// same. Once in a process; nothing for a plain thread, or a carrier's own loop. With UMS_TRACE=FILE
// the rings go into the file.
//
// The program's own handler of a signal may do its work by it (null checks, write barriers) and go
// on. Before it one line names the fiber, so many times at most, and that does not count as the
// report.

namespace ums::sched {

// Of the calling fiber, if the caller is one. Async-signal-safe.
void report_signal(int number) noexcept;
// The same, if the program has a handler.
void mention_signal(int number) noexcept;
// The rings, for a signal that was reported in another way.
void dump_at_crash() noexcept;

// std::terminate() reports, too, before it calls the handler that was there. Idempotent, and taken
// back if nobody has put another one on top.
void report_terminate() noexcept;
void stop_reporting_terminate() noexcept;

}  // namespace ums::sched
