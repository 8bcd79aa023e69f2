// SPDX-License-Identifier: MIT
#pragma once

// sched/crash.hpp: which fiber a fatal signal or std::terminate() has hit.
//
// The report says the fiber's id and name, who made it and where, its start function, and the calls it is in. Then what
// the program has installed goes on, or the default action: the exit is the same. Once in a process; nothing for a plain
// thread, or a carrier's own loop. With UMS_TRACE=FILE the rings go into the file.

namespace ums::sched {

// Of the calling fiber, if the caller is one. Async-signal-safe.
void report_signal(int number) noexcept;
// The rings, for a signal that was reported in another way.
void dump_at_crash() noexcept;

// std::terminate() reports, too, before it calls the handler that was there. Idempotent, and taken back if nobody has put
// another one on top.
void report_terminate() noexcept;
void stop_reporting_terminate() noexcept;

}  // namespace ums::sched
