// SPDX-License-Identifier: MIT
#pragma once

// ums/keep_carrier.hpp: a stretch of code in which the fiber stays on one kernel thread.
//
//     const ums::keep_carrier kept;
//     const PyGILState_STATE state = PyGILState_Ensure();
//     call_python();  // May call back, and the callback may wait: it returns on this thread.
//     PyGILState_Release(state);
//
// For libraries that know their kernel thread: an interpreter, a virtual machine's native
// interface, a lock with an owner, anything in thread_local variables. Between the constructor and
// the destructor the fiber keeps the kernel thread that it runs on (its carrier): after every wait,
// yield and time slice it continues there, and no other fiber runs there meanwhile. When the fiber
// waits, its processor goes to another kernel thread and runs the other fibers.
//
// Blocking: waits, wake-ups, deadlines, stop tokens and I/O work as without it. The scope itself
//           changes nothing about what blocks. On a plain thread it does nothing.
// Nesting:  scopes nest; the outermost counts. The end of a scope, and the calls inside, must be on
//           the fiber that began it. this_fiber::migrate() to another cluster inside a scope ends
//           the program with a message. A marked region (ums/blocking.hpp) that begins inside must
//           end inside.
// Lifetime: a fiber that ends inside a scope (in C) leaves it after its exit hooks have run.
// Bound:    each scope needs one kernel thread more than the cluster has processors, and has it
//           from its beginning to its end. It counts against options::carriers, like a fiber that
//           is blocked in the kernel. So a wait inside a scope never fails, and never waits for a
//           kernel thread. As a program with kernel threads cannot start another past its limit, a
//           scope past the bound cannot begin: it throws, and never waits.
// Errors:   std::system_error. EAGAIN: the cluster has as many kernel threads as it may have, or
//           the kernel refuses another one. ENOMEM.
// Cost:     to begin and end, two short lock sections and the wake-up of a kernel thread; if there
//           is no spare one, one is made, for which the caller's kernel thread blocks. Each switch
//           away from the fiber and back costs two wake-ups of kernel threads: some 5 to 50
//           microseconds, where it costs others some 50 nanoseconds. A yield while nothing else is
//           ready costs no more than usual. Other fibers pay nothing.

#include "ums/export.hpp"

namespace ums {

namespace impl {
UMS_EXPORT void keep_carrier_enter();
UMS_EXPORT void keep_carrier_leave() noexcept;
}  // namespace impl

class keep_carrier {
public:
    keep_carrier() { impl::keep_carrier_enter(); }
    ~keep_carrier() { impl::keep_carrier_leave(); }
    keep_carrier(const keep_carrier&) = delete;
    keep_carrier& operator=(const keep_carrier&) = delete;
};

}  // namespace ums
