// SPDX-License-Identifier: MIT
#pragma once

// io/uring_engine.hpp: the engine on io_uring.
//
// One ring, on which each descriptor has a multishot poll: edges come as completions, without a system call
// while a processor runs. The operations themselves are tried first and need no ring, as with epoll.
//
// What it does not use, and why. IORING_SETUP_SINGLE_ISSUER and DEFER_TASKRUN bind a ring to the kernel thread
// that submits; here a processor may go on on another carrier at any time, so all carriers share the
// ring under two locks, and completions are posted by interrupting whichever thread armed the poll. Multishot receive into
// buffer rings needs those two flags to pay, and a stream that hands out buffers instead of filling the
// caller's. A thread that ends takes its polls with it: they complete with ECANCELED and are
// armed again by who sees that.
//
// No interrupt() is lost: it submits an operation that does nothing, whose completion ends the wait. Only who
// holds the completion queue's lock takes completions out, wait() holds it throughout, and poll() goes away
// if it does not get it.

#include <memory>

#include "io/engine.hpp"

namespace ums::io {

// Null, and why, if the kernel refuses: any error of io_uring_setup(), or one too old.
std::unique_ptr<engine> make_uring_engine(long& error) noexcept;

// Whether the kernel would give a ring, now: 0 or -errno. -ENOSYS also if the library was built without.
long probe_uring() noexcept;

}  // namespace ums::io
