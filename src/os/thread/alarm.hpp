// SPDX-License-Identifier: MIT
#pragma once

// os/thread/alarm.hpp: the sleep of one kernel thread, which others end at once or after a time.
//
// A thread sets an alarm for later by one system call and calls it off by another, and the sleeper
// does not notice. With a futex only the sleeper itself can set a limit.
//
// It is a timer whose signal the sleeper takes with sigtimedwait(2), so it needs no handler and no
// descriptor. The signal is the one that the C library cancels threads by, and sends to nobody
// else: glibc's own timer threads wait for it in the same way. A program cannot use it.
//
// Rejected: a timerfd, because a program may close any descriptor, and the sleeper would not learn
// of it.
//
// Lifetime:  the thread that sleeps calls begin() first, and another one end() after it has ended.
// Threads:   ring(), set() and call_off() may be called by several threads at the same time, each
//            ordered after begin(); sleep() by the sleeper alone.
// Errors:    if the kernel refuses such a timer, the sleep is a futex's, and each alarm is for now.

#include <cstdint>

#include "base/atomic.hpp"
#include "os/clock.hpp"

namespace ums::os {

class alarm {
public:
    alarm() noexcept = default;
    alarm(const alarm&) = delete;
    alarm& operator=(const alarm&) = delete;

    void begin() noexcept;
    void end() noexcept;
    // In the child of a fork(), which has no timers of the parent's.
    void leave_behind() noexcept { has_timer_ = false; }

    // Sleeps until an alarm. May return for no reason: callers test their condition again. One that
    // comes while nobody sleeps ends the next sleep.
    void sleep() noexcept;

    void ring() noexcept { set(1); }
    // In place of the one that was set before, if that has not come.
    void set(nanoseconds in) noexcept;
    // The one that was set will not come, unless it has.
    void call_off() noexcept;

private:
    int tid_ = 0;  // The sleeper's.
    int timer_ = -1;
    bool has_timer_ = false;
    base::atomic<std::uint32_t> has_rung_;  // Without a timer.
};

}  // namespace ums::os
