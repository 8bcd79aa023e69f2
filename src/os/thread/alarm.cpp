// SPDX-License-Identifier: MIT
#include "os/thread/alarm.hpp"

#include <cerrno>
#include <ctime>
#include <unistd.h>

#include "os/futex.hpp"
#include "os/system.hpp"

namespace ums::os {

namespace {

constexpr int cancel = 32;  // SIGCANCEL: below SIGRTMIN, as glibc counts.
constexpr nanoseconds refused = 10'000'000;

}  // namespace

void alarm::begin() noexcept {
    has_rung_.store(0, base::relaxed);  // relaxed: no other thread reads it yet.
    tid_ = ::gettid();
    const timespec now{0, 0};
    // EAGAIN: it waited, and none came.
    has_timer_ = system.signal_block(cancel) == 0 && system.signal_wait(cancel, &now) == -EAGAIN &&
                 system.thread_timer_create(CLOCK_MONOTONIC, tid_, cancel, nullptr, &timer_) == 0;
}

void alarm::end() noexcept {
    if (has_timer_) system.thread_timer_delete(timer_);
    has_timer_ = false;
}

void alarm::sleep() noexcept {
    if (!has_timer_) {
        // sync(alarm): sees why it was set. An exchange, because a store could take back one that
        // comes meanwhile, whose reason the caller does not see yet.
        if (has_rung_.exchange(0, base::acquire) == 0) futex_wait(has_rung_, 0);
        return;
    }
    const long error = system.signal_wait(cancel, nullptr);
    // A filter that was installed since begin() refuses to wait: then nothing tells of an alarm.
    if (error < 0 && error != -EINTR) futex_wait(has_rung_, 0, os::now() + refused);
}

void alarm::set(nanoseconds in) noexcept {
    if (!has_timer_) {
        has_rung_.store(1, base::release);  // sync(alarm)
        futex_wake(has_rung_.address());
    } else if (system.thread_timer_arm(timer_, in) != 0) {  // A filter refuses it.
        system.signal_thread(tid_, cancel);
    }
}

void alarm::call_off() noexcept {
    if (has_timer_) system.thread_timer_arm(timer_, 0);
}

}  // namespace ums::os
