// SPDX-License-Identifier: MIT
#pragma once

// os/thread/placement.hpp: makes a sleeping thread wake up on a given CPU.
//
// The kernel wakes a thread on an idle CPU if there is one, and waking that CPU from its halt takes
// 40 to 75 us in a virtual machine. If the waker's own CPU is about to be free, the thread is
// better off there. For the wake-up the waker narrows the thread's mask to that CPU; the thread
// itself widens it again when it runs, so later the kernel may move it freely. It asks for all CPUs
// if that gives it the mask that it had: the kernel remembers what was asked for, and a mask that
// the cpuset of the time had cut would stay cut when the cpuset grows. (A thread that last
// ran on that CPU needs none of this, if the CPU runs only SCHED_IDLE.)

#include <sched.h>

namespace ums::os {

class placement {
public:
    // Called by the waker, before it wakes the thread. Does nothing if the thread may not run
    // there, if the kernel refuses, or if `tid` is 0: the thread has not begun.
    void begin(int tid, int cpu) noexcept;
    // Called by the thread, once it runs.
    void end() noexcept {
        if (is_narrow_) [[unlikely]]
            widen();
    }

private:
    void widen() noexcept;

    bool is_narrow_ = false;  // Published by the wake-up.
    cpu_set_t before_{};
};

}  // namespace ums::os
