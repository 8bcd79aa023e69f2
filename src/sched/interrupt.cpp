// SPDX-License-Identifier: MIT
#include "sched/interrupt.hpp"

#include <csignal>
#include <cstring>
#include <pthread.h>
#include <sys/mman.h>

#include "base/assert.hpp"
#include "os/memory.hpp"
#include "os/say.hpp"

namespace ums::sched {

namespace {

// Changed while no carrier runs.
const os::interrupt_signal* the_signal = nullptr;
os::user_interrupt::way the_way = os::user_interrupt::way::timer;

base::atomic<bool> has_complained;

}  // namespace

void interrupt::use(const os::interrupt_signal* signal, os::user_interrupt::way how) noexcept {
    the_signal = signal;
    the_way = how;
}

bool interrupt::is_possible() noexcept {
    return the_signal != nullptr && the_signal->is_installed();
}

void interrupt::unblock() noexcept {
    if (the_signal == nullptr) return;
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, the_signal->number());
    pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
}

void interrupt::arm(int tid, os::nanoseconds after) noexcept {
    if (is_open() || open(tid)) clock_.arm(after);
}

bool interrupt::open(int tid) noexcept {
    if (!is_possible()) return false;
    long error = 0;
    if (crossing_ == nullptr) {
        crossing_ = static_cast<char*>(os::map(crossing_bytes));
        if (crossing_ == nullptr) error = -ENOMEM;
    }
    using way = os::user_interrupt::way;
    if (error == 0) error = clock_.open(tid, the_signal->number(), the_way);
    if (error < 0 && crossing_ != nullptr && the_way != way::timer)
        error = clock_.open(tid, the_signal->number(), way::timer);
    if (error == 0) {
        is_open_.store(true, base::release);  // sync(interrupt.open)
        return true;
    }
    // relaxed: only whether it was said.
    if (!has_complained.exchange(true, base::relaxed))
        os::say("no clock to stop fibers by (%s): those that were blocked in the kernel, and those that never yield, "
                "run on until they next call libums; see ulimit -i and ulimit -n",
                std::strerror(static_cast<int>(-error)));
    return false;
}

void interrupt::close() noexcept {
    if (is_open()) {
        is_open_.store(false, base::relaxed);  // relaxed: nobody else looks any more.
        base::compiler_fence();                // A last signal finds it closed.
        clock_.close();
    }
    if (crossing_ != nullptr) os::unmap(crossing_, crossing_bytes);
    crossing_ = nullptr;
}

}  // namespace ums::sched
