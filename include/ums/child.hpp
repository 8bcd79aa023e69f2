// SPDX-License-Identifier: MIT
#pragma once

// ums/child.hpp: waiting for the end of a child process.
//
//   pid_t pid;
//   posix_spawn(&pid, ...);
//   int status = ums::wait_child(pid).value();        // as waitpid(): WIFEXITED(status), ...
//
// Blocking: parks the fiber, on a pidfd. It needs no SIGCHLD.
// Errors:   no_child_process: not a child, or waited for already. timed_out, operation_canceled.

#include <sys/types.h>
#include <sys/wait.h>

#include "ums/export.hpp"
#include "ums/limits.hpp"
#include "ums/result.hpp"

namespace ums {

UMS_EXPORT result<int> wait_child(pid_t pid, const limits& l = {});

}  // namespace ums
