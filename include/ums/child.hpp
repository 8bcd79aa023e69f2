// SPDX-License-Identifier: MIT
#pragma once

// ums/child.hpp: waits for the end of a child process.
//
//   pid_t pid;
//   posix_spawn(&pid, ...);
//   int status = ums::wait_child(pid).value();        // as waitpid(): WIFEXITED(status), ...
//
// Blocking: parks the fiber on a pidfd; blocks a plain thread. It needs no SIGCHLD.
// Errors:   in the result: no_child_process (not a child, or already waited for), timed_out,
//           operation_canceled, and the errors of pidfd_open(). A wait that gives up leaves the
//           child to be waited for.
// Cost:     a descriptor while it waits, and a few system calls.

#include <sys/types.h>
#include <sys/wait.h>

#include "ums/export.hpp"
#include "ums/limits.hpp"
#include "ums/result.hpp"

namespace ums {

// Waits until the child has ended, reaps it, and returns its status.
UMS_EXPORT result<int> wait_child(pid_t pid, const limits& l = {});

}  // namespace ums
