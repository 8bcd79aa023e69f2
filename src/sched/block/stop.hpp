// SPDX-License-Identifier: MIT
#pragma once

// sched/block/stop.hpp: stopping a fiber at an arbitrary instruction.
//
// There are three reasons. The fiber's cluster is paused (pausing::begin()); it runs on without a
// processor, because an unmarked call of it was blocked in the kernel and the processor was handed
// on; or its time slice is over. The signal comes in user mode only (os/signal/user_interrupt.hpp),
// so no system call sees it.
//
// The fiber may be inside malloc, in the middle of a thread-local access, or hold a lock that knows
// its owner's thread id, so it must never resume on another kernel thread. It is stopped together
// with its carrier: the handler puts it into its cluster's queue and waits on a futex. The fiber
// itself lies in the queue, but its saved context is not its own. That context leads to a few
// instructions on a small stack (the relay), which give the processor of the carrier that
// switched to it to the carrier that waits, and that one continues where it was stopped. So the
// path of a switch knows nothing of all this, nor does a policy. (Shiina, Iwasaki, Taura, Balaji,
// "Lightweight preemptive user-level threads", PPoPP 2021, call it KLT-switching.)
//
// There must be a detector of blocking: a stopped fiber that holds one of those locks keeps others
// waiting in the kernel; their processors must move on so that it gets its turn. A detector does
// not see locks that spin, such as those of AddressSanitizer's runtime: there no fiber is stopped
// (runtime/carrier_watch.cpp).
//
// A stop never deadlocks a program that would not deadlock with kernel threads. The fiber may hold
// a lock on which the others spin, or a lock that the scheduling policy or the maker of kernel
// threads needs. So if nothing has switched for `patience`, the detector, which looks at the
// processors anyway, releases all fibers that wait for their turn: they run on without a processor,
// as the kernel threads that they are. See carry/turn.hpp.
//
// The handler calls neither the policy nor the allocator: the carrier that takes its processor
// makes a stopped fiber ready, or, if it had none, the fiber lies in the pool's list.
//
// A fiber is not stopped in the scheduler (ownership::is_inside), in sections that other threads
// need before they can give it a processor (os/no_stop.hpp), and in ums::uninterruptible(). A stop
// is put off for a while in the C library, the loader and the C++ runtime, because there the fiber
// probably holds a lock that many want; for a pause it is put off until the fiber is out of there,
// so that the pauser may allocate.

#include <csignal>
#include <cstddef>

#include "carry/interrupt.hpp"
#include "os/clock.hpp"

namespace ums::sched {

struct carrier;
struct fiber;
class processor;

struct stop {
    // How long a stopped fiber waits while nothing else switches, and until the detector's next
    // look; three time slices, if that is longer. Tests set it while no runtime runs.
    static inline os::nanoseconds patience = 10'000'000;

    // How often a stop is put off in the C library and similar libraries, by 100 us each time. One
    // that is put off to the next tick counts ten times. Tests set it while no runtime runs.
    static inline unsigned most_deferrals = 40;

    // The handler of the interrupt signal, on the thread that was stopped. `context` is a
    // ucontext_t.
    static void on_interrupt(const siginfo_t& signal, void* context) noexcept;

    // At the end of ums::uninterruptible(), on the carrier that runs `f`: stops the fiber, as
    // on_interrupt() would have done inside, if that is still due.
    static void make_up(carrier& c, fiber& f) noexcept;

    // Notes where the C library and similar libraries lie. Call it once at a runtime's start.
    static void learn_where_to_wait();

    // The signal and the clock for all carriers of fibers.
    static inline constinit carry::interrupt_source source;
    // The size of a carrier's small stack, on which the relay runs.
    static constexpr std::size_t relay_bytes = 64 * 1024;

    // For a detector: other fibers want the processor, and it has not switched for a time slice;
    // its activity was `seen`. Its fiber is stopped as soon as it runs in user mode, if all that
    // still holds. Returns whether it does, and the fiber is not in ums::uninterruptible().
    static bool end_time_slice(processor& p, std::uint64_t seen) noexcept;

    // If the fiber that the calling carrier runs was stopped and released, and needs a processor,
    // waits until its turn has come. Otherwise does nothing.
    static void wait_if_released(carrier& c) noexcept;
};

}  // namespace ums::sched
