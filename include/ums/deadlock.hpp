// SPDX-License-Identifier: MIT
#pragma once

// ums/deadlock.hpp: who waits for whom in a circle.
//
// A deadlock is a cycle of fibers (and plain threads), each of which waits for a mutex that the
// next one holds. Found are cycles of the mutexes of ums/mutex.hpp and ums/shared_mutex.hpp, in all
// clusters, also while other fibers run on. Of a shared mutex only the writer is known: who waits for
// readers is in no cycle. A wait with a deadline or a stop token ends by itself and is no part of any.
// What is found is certain, and stays until the process ends: see src/sched/deadlock.cpp. What
// exists when the call begins is found.
//
// With options::deadlock (UMS_DEADLOCK) the runtime looks by itself when a cluster has nothing to
// run and no deadline to wait for, and writes each cycle to standard error once.
//
// Blocking:  never parks. Nothing is stopped; a fiber of a cycle is taken aside for as long as its
//            stack is read. One that has yet to park is waited for, by yielding; if that takes 10 s
//            (its processor is blocked in the kernel) its stack stays empty.
// Lifetime:  the runtime must not be stopped meanwhile.
// Errors:    std::bad_alloc.
// Cost:      a read per fiber alive, a system call per mutex that is waited for. A wait costs four
//            stores more.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "ums/export.hpp"
#include "ums/fiber_ref.hpp"

namespace ums {

struct deadlock_member {
    fiber_id fiber;               // Of a plain thread: none.
    int thread = 0;               // The kernel's id of a plain thread; 0: it is a fiber.
    std::string name;             // As given to the fiber.
    const void* mutex = nullptr;  // What it waits for; the next member holds it (the first, after
                                  // the last).
    // Return addresses, innermost first. Empty for a plain thread: a debugger has its stack.
    std::vector<const void*> stack;
    const void* spawned_at = nullptr;  // Where the code that made the fiber goes on.
};

struct deadlock_cycle {
    std::vector<deadlock_member> members;  // Two or more.
};

[[nodiscard]] UMS_EXPORT std::vector<deadlock_cycle> find_deadlocks();

// As report_deadlocks() writes it. A frame is "#N ADDRESS NAME+OFFSET (FILE+OFFSET)", without a
// name where the dynamic symbols have none; `addr2line -e FILE OFFSET` knows more.
[[nodiscard]] UMS_EXPORT std::string to_string(const deadlock_cycle& cycle);

// Writes all there are; returns how many.
UMS_EXPORT std::size_t report_deadlocks(std::FILE* to = stderr);

}  // namespace ums
