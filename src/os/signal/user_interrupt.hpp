// SPDX-License-Identifier: MIT
#pragma once

// os/signal/user_interrupt.hpp: stops a kernel thread by a signal, but only while it is in user
// mode.
//
// A signal that is sent to a thread ends the system call that the thread is in: the call fails with
// EINTR, and few programs expect that. So nothing is sent here. Instead a clock is set, which ticks
// while the thread has a CPU and which the kernel looks at in an interrupt of that CPU. If the
// interrupt came from user mode, the signal is delivered on the way back, before the thread's next
// instruction; if not, the clock tries again later. Two clocks can do that:
//
// perf   a software clock event of the thread with exclude_kernel, whose overflow signals its
//        owner. It is an hrtimer: precise to some 10 us, and repeated with the same period until it
//        comes in user mode. While one is armed each switch to and from the thread programs the
//        CPU's timer, which takes 10 us in a virtual machine. Not on PREEMPT_RT kernels, which send
//        the signal later, from a thread.
// timer  a POSIX timer on the thread's *user* CPU time, which passes in whole scheduler ticks (1 to
//        10 ms), at ticks that come in user mode. It works where perf is refused. Not with full
//        dynticks (nohz_full), where the kernel counts user time exactly: there a tick in the
//        middle of a system call may find the timer expired.
//
// Rejected: tgkill() to a thread seen running in /proc, because the thread may enter a system call
// before the signal arrives; a timer that ticks all the time, because it costs even when no thread
// is to be stopped.
//
// Ordering:  after an arm() (unless it was disarmed) a handler runs that sees what the armer wrote
//            before. It may begin early if an older signal was on its way, and a signal may still
//            come after disarm(): the handler asks the program's own state what to do. There are
//            never more signals than arms.
// Lost:      perf's signal needs room under RLIMIT_SIGPENDING. Without it the kernel sends SIGIO,
//            which os/signal/interrupt_signal.hpp handles, and the signal comes later.
// Blocked:   a thread that blocks the signal gets it when it unblocks it. If it does that in a
//            system call that waits (ppoll(), sigsuspend()), that call returns EINTR, as such calls
//            do.
// Lifetime:  destroyed by the thread itself, or after the thread has ended.
// Cost:      arm() and disarm() make at most two system calls. Both are async-signal-safe and may
//            be called by any thread.

#include <csignal>

#include "base/atomic.hpp"
#include "os/clock.hpp"

namespace ums::os {

class user_interrupt {
public:
    enum class way : unsigned char { perf, timer };

    // The best way that this machine permits; tries it on the calling thread.
    [[nodiscard]] static way best_way() noexcept;

    // Whether all CPUs have scheduler ticks, so that way::timer works (see above).
    [[nodiscard]] static bool has_ticks() noexcept;

    // Whether the calling thread could have a clock that can send a signal. Returns 0 or -errno.
    [[nodiscard]] static long try_it() noexcept;

    // How many descriptors all clocks of the process may have. Beyond that open() makes timers, so
    // that the program keeps its own descriptors, however many of its threads are blocked.
    static constexpr unsigned most_events = 32;

    user_interrupt() noexcept = default;
    // Makes a clock for the kernel thread `tid` of this process. Throws std::system_error.
    user_interrupt(int tid, int signal, way how);
    ~user_interrupt() { close(); }
    user_interrupt(const user_interrupt&) = delete;
    user_interrupt& operator=(const user_interrupt&) = delete;

    // Makes the clock of a closed object, without the allocator. Returns 0, or -errno, and then it
    // is still closed.
    [[nodiscard]] long open(int tid, int signal, way how) noexcept;
    // Called by the thread itself, or after it has ended. Does nothing if it is closed.
    void close() noexcept;

    // In kernel mode the clock's interrupt comes again and again, after the same time. In a virtual
    // machine an interrupt can take 10 us, so a shorter period would leave the thread, and its CPU,
    // no time for anything else.
    static constexpr nanoseconds shortest = 50'000;

    // Sends one signal, as soon as the thread has run for `after`, at least `shortest`, and is in
    // user mode. Replaces what was armed before.
    void arm(nanoseconds after) noexcept;
    void disarm() noexcept;

    [[nodiscard]] way how() const noexcept { return how_; }

    // For the handler: whether the signal comes from a user_interrupt, possibly one that is gone.
    // Counts the signal as taken, so call it once per signal.
    [[nodiscard]] static bool take(const siginfo_t& signal) noexcept;

    // For the handler of SIGIO, which the kernel sends in place of a signal that it had no room
    // for. Arms the clock whose signal the calling thread has lost, to fire some milliseconds
    // later. Returns false if no event of the calling thread was armed.
    static bool try_lost_again() noexcept;

private:
    long open_event(int tid, int signal) noexcept;
    [[gnu::cold]] void complain() const noexcept;
    void close_event() noexcept;
    void taken(int code) noexcept;

    way how_ = way::timer;
    int event_ = -1;  // perf: the descriptor.
    int timer_ = -1;
    // perf: whether the event may still send a signal; 0 once the signal was taken.
    static constexpr unsigned may_fire = 1, closing = 2;
    base::atomic<unsigned> due_;
};

}  // namespace ums::os
