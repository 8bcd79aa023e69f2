// SPDX-License-Identifier: MIT
#pragma once

// io/uring_engine.hpp: the engine on io_uring.
//
// One ring, on which each descriptor has a multishot poll: edges come as completions, without a system call
// while a processor runs. The operations themselves are tried first and need no ring, as with epoll.
//
// What it does not use, and why. IORING_SETUP_SINGLE_ISSUER and DEFER_TASKRUN bind a ring to the kernel thread
// that submits; here a processor may go on on another carrier at any time, so all carriers share the
// ring under two locks, and completions are posted by interrupting whichever thread armed the poll. With one processor
// that thread is, as a rule, the one that takes them out, and is not interrupted (COOP_TASKRUN): its next system call, or
// the clock's tick, posts them, and a poll() in between makes it post what is marked as pending (TASKRUN_FLAG). With
// more an idle processor would wait that long for an edge while the thread that armed it computes. What else a ring
// could do, and why it is not done: docs/design/io-uring.md. A thread that ends takes its polls with it: they complete with ECANCELED and are
// armed again by who sees that.
//
// No interrupt() is lost: it submits an operation that does nothing, whose completion ends the wait. Only who
// holds the completion queue's lock takes completions out, wait() holds it throughout, and poll() goes away
// if it does not get it.

#include <memory>

#include "io/engine.hpp"

namespace ums::io {

// Null, and why, if the kernel refuses: any error of io_uring_setup(), or one too old.
std::unique_ptr<engine> make_uring_engine(bool has_one_processor, long& error) noexcept;

// Whether the kernel would give a ring, now: 0 or -errno. -ENOSYS also if the library was built without.
long probe_uring() noexcept;

}  // namespace ums::io
