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

void interrupt_source::set(const os::interrupt_signal* signal) noexcept {
    signal_ = signal;
    if (signal == nullptr) return;
    precise_ = os::user_interrupt::best_way();
    coarse_ = os::user_interrupt::has_ticks() ? os::user_interrupt::way::timer : precise_;
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

long interrupt_source::open(os::user_interrupt& clock, int tid, os::user_interrupt::way first,
                            os::user_interrupt::way second) const noexcept {
    const long error = clock.open(tid, signal_->number(), first);
    return error < 0 && first != second ? clock.open(tid, signal_->number(), second) : error;
}

long interrupt_source::open_precise(os::user_interrupt& clock, int tid) const noexcept {
    return open(clock, tid, precise_, os::user_interrupt::way::timer);
}

long interrupt_source::open_coarse(os::user_interrupt& clock, int tid) const noexcept {
    return open(clock, tid, coarse_, precise_);
}

void interrupt::arm(int tid, os::nanoseconds after) noexcept {
    UMS_ASSERT(tid > 0, "a clock is armed for no thread");
    if (!precise_.is_open() && source_.is_possible())
        made(precise_, make_stack() ? source_.open_precise(precise_.is, tid) : -ENOMEM);
    if (precise_.is_open()) precise_.is.arm(after);
}

void interrupt::arm_coarse(int tid, os::nanoseconds after) noexcept {
    UMS_ASSERT(tid > 0, "a clock is armed for no thread");
    if (!coarse_.is_open() && source_.is_possible())
        made(coarse_, make_stack() ? source_.open_coarse(coarse_.is, tid) : -ENOMEM);
    if (precise_.is_open()) precise_.is.disarm();
    if (coarse_.is_open()) coarse_.is.arm(after);
}

void interrupt::again(os::nanoseconds after) noexcept {
    if (precise_.is_open())
        precise_.is.arm(after);
    else if (coarse_.is_open())
        coarse_.is.arm(after);
}

void interrupt::disarm() noexcept {
    if (precise_.is_open()) precise_.is.disarm();
    if (coarse_.is_open()) coarse_.is.disarm();
}

bool interrupt::make_stack() noexcept {
    if (stack_ == nullptr && stack_bytes_ != 0) stack_ = static_cast<char*>(os::map(stack_bytes_));
    UMS_ASSERT(reinterpret_cast<std::uintptr_t>(stack_) % 16 == 0, "a small stack is not aligned");
    return stack_ != nullptr || stack_bytes_ == 0;
}

void interrupt::made(clock& c, long error) noexcept {
    if (error == 0) return c.is_made.store(true, base::release);  // sync(interrupt.open)
    static constinit base::atomic<bool> has_complained;
    // relaxed: the flag only says whether the message was printed.
    if (!has_complained.exchange(true, base::relaxed))
        os::say(
            "no clock to stop fibers and workers by (%s): those that were blocked in the kernel, "
            "and fibers "
            "that never yield, run on until they next call libums; see ulimit -i and ulimit -n",
            std::strerror(static_cast<int>(-error)));
}

void interrupt::leave_behind() noexcept {
    for (clock* c : {&precise_, &coarse_})
        if (c->is_open()) c->is.close();
}

void interrupt::close() noexcept {
    for (clock* c : {&precise_, &coarse_}) {
        if (!c->is_open()) continue;
        c->is_made.store(false, base::relaxed);  // relaxed: no other thread looks any more.
        base::compiler_fence();                  // A last signal finds it closed.
        c->is.close();
    }
    if (stack_ != nullptr) os::unmap(stack_, stack_bytes_);
    stack_ = nullptr;
}

}  // namespace ums::carry
