// SPDX-License-Identifier: MIT
#pragma once

// os/user_interrupt.hpp: stops a kernel thread by a signal, but only while it is in user mode.
//
// A signal that is sent to a thread ends the system call that the thread is in: it fails with EINTR,
// and few programs expect that. So nothing is sent here; a clock is set, which ticks while the thread
// has a CPU and which the kernel looks at in an interrupt of that CPU. If the interrupt came out of
// user mode the signal is delivered on the way back, before the thread's next instruction; if not,
// the clock tries again later. Two clocks can do that:
//
// perf   a software clock event of the thread with exclude_kernel, whose overflow signals its owner.
//        An hrtimer: precise to some 10 us, and repeated with the same period until it comes in
//        user mode. Not on PREEMPT_RT kernels, which send the signal later, from a thread.
// timer  a POSIX timer on the thread's *user* CPU time, which passes in whole scheduler ticks (1 to
//        10 ms), at ticks that come in user mode. Works where perf is refused. Not with full
//        dynticks (nohz_full), where the kernel counts user time exactly: there a tick in the
//        middle of a system call may find the timer expired.
//
// Rejected: tgkill() to a thread seen running in /proc, for it may enter a system call before the
// signal arrives; a timer that ticks all the time, for it costs when nobody is to be stopped.
//
// Ordering:  a handler runs after an arm() (unless it was disarmed) that sees what the armer wrote
//            before. It may begin early if an older signal was on its way, and a signal may still
//            come after disarm(): the handler asks the program's own state what to do. Never more
//            signals than arms.
// Blocked:   a thread that blocks the signal gets it when it unblocks it. If it does that in a
//            system call that waits (ppoll(), sigsuspend()), that call returns EINTR, as is its use.
// Lifetime:  destroyed by the thread itself, or after it has ended.
// Cost:      arm(), disarm(): a system call, at most two. Both are async-signal-safe and may be
//            called by any thread.

#include <csignal>

#include "base/atomic.hpp"
#include "os/clock.hpp"

namespace ums::os {

class user_interrupt {
public:
    enum class way : unsigned char { perf, timer };

    // What this machine permits, best first; tries it on the calling thread.
    [[nodiscard]] static way best_way() noexcept;

    // For the kernel thread `tid` of this process. Throws std::system_error.
    user_interrupt(int tid, int signal, way how);
    ~user_interrupt();
    user_interrupt(const user_interrupt&) = delete;
    user_interrupt& operator=(const user_interrupt&) = delete;

    // One signal, as soon as the thread has run for `after` (at least 10 us) and is in user mode. Replaces
    // what was armed before.
    void arm(nanoseconds after) noexcept;
    void disarm() noexcept;

    [[nodiscard]] way how() const noexcept { return how_; }

    // For the handler: whether the signal comes from a user_interrupt (also of one that is gone).
    // Counts it as taken: call it once per signal.
    [[nodiscard]] static bool take(const siginfo_t& signal) noexcept;

private:
    long open_event(int tid, int signal) noexcept;
    void taken(int code) noexcept;

    const way how_;
    int event_ = -1;  // perf: the descriptor.
    int timer_ = -1;
    // perf: 1 if the event may still send a signal, 0 once that was taken.
    base::atomic<unsigned> due_;
};

}  // namespace ums::os
