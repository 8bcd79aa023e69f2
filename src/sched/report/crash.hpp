// SPDX-License-Identifier: MIT
#pragma once

// sched/report/crash.hpp: which fiber a fatal signal or std::terminate() has hit.
//
// The report says the fiber's id and name, which fiber made it and where, its start function, and
// its call stack. Then the default action follows, or the program's terminate handler: the exit is
// the same. There is one report in a process; none for a plain thread, or a carrier's own loop.
// With UMS_TRACE=FILE the rings are written to the file.
//
// The program may use a handler of its own for its work (null checks, write barriers) and continue.
// Before that handler runs, one line names the fiber; this happens a limited number of times, and
// does not count as the report.

namespace ums::sched {

// Reports the calling fiber, if the caller is one, and how far below its stack `sp` is (null: not
// known). Async-signal-safe.
void report_signal(int number, const void* sp) noexcept;
// The same in one line, if the program has a handler.
void mention_signal(int number) noexcept;

// Makes std::terminate() report, too, before it calls the handler that was there. Idempotent. Taken
// back later, unless the program has put another handler on top.
void report_terminate() noexcept;
void stop_reporting_terminate() noexcept;

}  // namespace ums::sched
