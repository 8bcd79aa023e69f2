// SPDX-License-Identifier: MIT
#include "carry/interrupt.hpp"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <pthread.h>
#include <sys/mman.h>

#include "base/assert.hpp"
#include "os/memory.hpp"
#include "os/say.hpp"

namespace ums::carry {

void interrupt_source::set(const os::interrupt_signal* signal,
                           os::user_interrupt::way how) noexcept {
    signal_ = signal;
    how_ = how;
}

bool interrupt_source::is_possible() const noexcept {
    return signal_ != nullptr && signal_->is_installed();
}

void interrupt_source::unblock() const noexcept {
    if (signal_ == nullptr) return;
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, signal_->number());
    pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
}

long interrupt_source::open(os::user_interrupt& clock, int tid) const noexcept {
    using way = os::user_interrupt::way;
    const long error = clock.open(tid, signal_->number(), how_);
    return error < 0 && how_ != way::timer ? clock.open(tid, signal_->number(), way::timer) : error;
}

void interrupt::arm(int tid, os::nanoseconds after) noexcept {
    UMS_ASSERT(tid > 0, "a clock is armed for no thread");
    if (is_open() || open(tid)) clock_.arm(after);
}

bool interrupt::open(int tid) noexcept {
    if (!source_.is_possible()) return false;
    if (stack_ == nullptr && stack_bytes_ != 0) stack_ = static_cast<char*>(os::map(stack_bytes_));
    UMS_ASSERT(reinterpret_cast<std::uintptr_t>(stack_) % 16 == 0, "a small stack is not aligned");
    const long error = stack_ == nullptr && stack_bytes_ != 0 ? -ENOMEM : source_.open(clock_, tid);
    if (error == 0) {
        is_open_.store(true, base::release);  // sync(interrupt.open)
        return true;
    }
    static constinit base::atomic<bool> has_complained;
    // relaxed: the flag only says whether the message was printed.
    if (!has_complained.exchange(true, base::relaxed))
        os::say(
            "no clock to stop fibers and workers by (%s): those that were blocked in the kernel, "
            "and fibers "
            "that never yield, run on until they next call libums; see ulimit -i and ulimit -n",
            std::strerror(static_cast<int>(-error)));
    return false;
}

void interrupt::close() noexcept {
    if (is_open()) {
        is_open_.store(false, base::relaxed);  // relaxed: no other thread looks any more.
        base::compiler_fence();                // A last signal finds it closed.
        clock_.close();
    }
    if (stack_ != nullptr) os::unmap(stack_, stack_bytes_);
    stack_ = nullptr;
}

}  // namespace ums::carry
