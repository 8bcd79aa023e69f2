// SPDX-License-Identifier: MIT
#pragma once

// io/engine/uring_engine.hpp: the engine on io_uring.
//
// There is one ring, on which each descriptor has a multishot poll: edges come as completions,
// without a system call while a processor runs. Operations are tried first and need no ring, as
// with epoll.
//
// What it does not use, and why: IORING_SETUP_SINGLE_ISSUER and DEFER_TASKRUN bind a ring to the
// kernel thread that submits. Here a processor may continue on another carrier at any time, so all
// carriers share the ring under two locks, and the kernel posts completions by interrupting
// whichever thread armed the poll. With one processor that thread is usually the one that takes
// them out, and it is not interrupted (COOP_TASKRUN): its next system call, or the clock's tick,
// posts them, and a poll() in between makes it post what is marked as pending (TASKRUN_FLAG). With
// more processors, an idle one would wait that long for an edge while the thread that armed it
// computes. docs/design/io-uring.md says what else a ring could do, and why it is not done. A
// thread that ends takes its polls with it: they complete with ECANCELED, and are re-armed by
// whichever thread reaps the completion.
//
// Why no interrupt() is lost: it submits an operation that does nothing, whose completion ends the
// wait. Only the holder of the completion queue's lock takes completions out; wait() holds that
// lock throughout, and poll() returns if it does not get it.

#include <memory>

#include "io/engine/engine.hpp"

namespace ums::io {

// Returns null, and why, if the kernel refuses: any error of io_uring_setup(), or a kernel that is
// too old.
std::unique_ptr<engine> make_uring_engine(bool has_one_processor, long& error) noexcept;

// Whether the kernel would give a ring now: 0 or -errno. Returns -ENOSYS also if the library was
// built without io_uring.
long probe_uring() noexcept;

}  // namespace ums::io
