// SPDX-License-Identifier: MIT
#pragma once

// runtime/fork.hpp: what becomes of a runtime when a fiber calls fork().
//
// The child has one kernel thread, the one that called fork(), and on it the fiber that did. It
// gets a runtime of its own: a default cluster with the settings of the parent's and one processor,
// which this thread carries. The fiber belongs to it. Everything else is left behind: the other
// fibers, the clusters, the processors' queues and deadlines, the engine, the threads. What was
// left behind stays in memory as it was at the fork, because the fiber may have addresses of it,
// and nothing reads or writes it but through those.
//
// So the child needs little of what the parent had to be whole. A cluster's queues may be torn:
// nobody looks there again, and a fiber that becomes ready in a cluster that was left behind is
// forgotten (cluster::make_ready_from_outside()). Both use the depot and the lists of priority
// lenders, whose locks the forking thread holds meanwhile, and words that are read and written as a
// whole. The other global locks of the library are made free in the child: a lock that is added
// must be freed in leave_rest_behind(), too, or lie in an object that the child makes anew.
//
// No thread is made: most children execute another program. The maker's, and the pool's for
// off-loaded calls, come when they are needed. There is no detector of blocking, so nothing is
// stopped.
//
// Our handlers are registered when the library is loaded. So the one before the fork is the last to
// run, and holds the locks for no handler of the application's; and the one in the child is the
// first, and the application's may use fibers.
//
// A plain thread's child has no runtime, nor a thread that could carry one.
//
// Rejected: to stop all processors before the fork, so that the child finds every queue whole. It
// would find fibers there that it must not run. To keep the parent's cluster and processor in the
// child: each of their fields would need a rule of its own.

namespace ums::rt {

// Idempotent. Called when the library is loaded; by a start, so that a program that is linked
// statically contains it.
void handle_forks() noexcept;

}  // namespace ums::rt
