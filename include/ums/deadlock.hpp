// SPDX-License-Identifier: MIT
#pragma once

// ums/deadlock.hpp: finds deadlocks: fibers and threads that wait for each other in a circle.
//
// A deadlock is a cycle of fibers (and plain threads) in which each member waits for a mutex that
// the next one holds. find_deadlocks() finds cycles of the mutexes of ums/mutex.hpp and
// ums/shared_mutex.hpp, in all clusters, even while other fibers run. Of a shared mutex only the
// writer is known, so a writer that waits for readers belongs to no cycle. A wait with a deadline
// or a stop token ends by itself and belongs to none either. A reported cycle is certain and lasts
// until the process ends: see src/sched/report/deadlock.cpp. Every cycle that exists when the call
// begins is found.
//
// Unless options::deadlock is off, the runtime looks by itself when a cluster has had nothing to
// run and no deadline for 0.25 s. It writes each cycle to standard error once. It also says so,
// once, when no fiber can run any more because all wait for each other, whatever they wait in.
//
// Blocking:  never parks. Nothing is stopped; the call sets a fiber of a cycle aside while it reads
//            the fiber's stack. The call waits, by yielding, for a fiber that has yet to park. If
//            that takes 10 s (the fiber's processor is blocked in the kernel) the stack stays
//            empty.
// Lifetime:  the runtime must not be stopped during the call.
// Errors:    std::bad_alloc.
// Cost:      a read for each living fiber and a system call for each mutex that somebody waits for.
//            Each wait costs four stores more, whether or not anybody looks.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "ums/export.hpp"
#include "ums/fiber_ref.hpp"

namespace ums {

struct deadlock_member {
    fiber_id fiber;               // None for a plain thread.
    int thread = 0;               // The kernel's id of a plain thread; 0 for a fiber.
    std::string name;             // The fiber's name, as it was given.
    const void* mutex = nullptr;  // The mutex this member waits for. The next member holds it; the
                                  // first member holds that of the last.
    // Return addresses, innermost first. Empty for a plain thread: a debugger has its stack.
    std::vector<const void*> stack;
    const void* spawned_at = nullptr;  // Where the code that made the fiber continues.
};

struct deadlock_cycle {
    std::vector<deadlock_member> members;  // At least two.
};

// Returns all cycles there are, empty if none.
[[nodiscard]] UMS_EXPORT std::vector<deadlock_cycle> find_deadlocks();

// The text that report_deadlocks() writes. A frame is "#N ADDRESS FUNCTION at FILE:LINE", as an
// addr2line says that $PATH names: a process, which has three seconds for all of them. Without one,
// it is "#N ADDRESS NAME+OFFSET (FILE+OFFSET)", without a name where the dynamic symbols have none,
// and the commands that know more follow.
[[nodiscard]] UMS_EXPORT std::string to_string(const deadlock_cycle& cycle);

// Finds all cycles, writes them to `to`, and returns their number.
UMS_EXPORT std::size_t report_deadlocks(std::FILE* to = stderr);

}  // namespace ums
