// SPDX-License-Identifier: MIT
#pragma once

// carry/interrupt.hpp: the clock that interrupts a carrier's kernel thread in user mode
// (os/signal/user_interrupt.hpp), so that the code running there can be stopped.
//
// There are two clocks. The precise one has a descriptor and is right to some 10 us, but while it
// is armed each switch to the thread programs a timer of the CPU: in a virtual machine a thread
// that blocks often then takes five times as long. The coarse one counts scheduler ticks of 1 to
// 10 ms and costs a switch nothing. So the precise one is for code that is known to compute, the
// coarse one for code that may block again. Where one of them cannot be had, the other takes its
// place; a process has at most `os::user_interrupt::most_events` precise ones.
//
// The thread that first arms a clock makes it, without the allocator, whose lock may be held by the
// code that runs there. Most carriers never need one.
//
// A small stack (`stack_bytes`) may come with it, made with the first clock: the handler needs it
// to leave the stack of the stopped code (sched/block/stop.hpp).
//
// Threads:  arm() and arm_coarse() are called by a thread that holds a claim on the carrier, or by
//           the carrier's thread while it is inside: one at a time. The carrier's thread calls
//           again(), disarm() and close(): the first in the signal's handler, the others while the
//           carrier carries nothing, so that no thread holds a claim.

#include <cstddef>

#include "base/atomic.hpp"
#include "os/clock.hpp"
#include "os/signal/interrupt_signal.hpp"
#include "os/signal/user_interrupt.hpp"

namespace ums::carry {

// The signal and the kinds of clocks that carriers of one kind share.
class interrupt_source {
public:
    // Null if nothing is stopped. Call it while no such carrier runs.
    void set(const os::interrupt_signal* signal) noexcept;
    // Whether anything can be stopped. Also false once the application has replaced our handler by
    // its own.
    [[nodiscard]] bool is_possible() const noexcept;
    // For a carrier's thread, at its start, because the application may have blocked the signal
    // before it started us.
    void unblock() const noexcept;
    // Both return 0, or -errno.
    [[nodiscard]] long open_precise(os::user_interrupt& clock, int tid) const noexcept;
    [[nodiscard]] long open_coarse(os::user_interrupt& clock, int tid) const noexcept;

private:
    [[nodiscard]] long open(os::user_interrupt& clock, int tid, os::user_interrupt::way first,
                            os::user_interrupt::way second) const noexcept;

    const os::interrupt_signal* signal_ = nullptr;
    os::user_interrupt::way precise_ = os::user_interrupt::way::timer;
    os::user_interrupt::way coarse_ = os::user_interrupt::way::timer;
};

class interrupt {
public:
    explicit interrupt(const interrupt_source& source, std::size_t stack_bytes = 0) noexcept
        : source_{source}, stack_bytes_{stack_bytes} {}
    ~interrupt() { close(); }
    interrupt(const interrupt&) = delete;
    interrupt& operator=(const interrupt&) = delete;

    // Sends one signal to the thread `tid` as soon as that has run for `after`. Replaces what was
    // armed before by the same function. If the kernel grants no clock, the code there runs on
    // until it next calls libums, and one line on standard error says so.
    void arm(int tid, os::nanoseconds after) noexcept;
    // The same at a scheduler tick, not before the thread has run for `after`. Also replaces what
    // arm() has armed.
    void arm_coarse(int tid, os::nanoseconds after) noexcept;
    // One more, by the precise clock if there is one already.
    void again(os::nanoseconds after) noexcept;
    void disarm() noexcept;
    void close() noexcept;
    // In the child of a fork(), where the thread is not there: closes the clocks' descriptors. It
    // is never used again.
    void leave_behind() noexcept;

    // Whether a clock was armed once, and could be made. Then there is a small stack, too.
    [[nodiscard]] bool is_open() const noexcept { return precise_.is_open() || coarse_.is_open(); }
    [[nodiscard]] bool has_precise() const noexcept { return precise_.is_open(); }
    // The upper end of the small stack. Requires: is_open().
    [[nodiscard]] char* stack() const noexcept { return stack_ + stack_bytes_; }

private:
    struct clock {
        os::user_interrupt is;
        base::atomic<bool> is_made;
        [[nodiscard]] bool is_open() const noexcept {
            return is_made.load(base::acquire);  // sync(interrupt.open): sees the clock.
        }
    };

    [[nodiscard]] bool make_stack() noexcept;
    void made(clock& c, long error) noexcept;

    const interrupt_source& source_;
    const std::size_t stack_bytes_;
    clock precise_, coarse_;
    char* stack_ = nullptr;
};

}  // namespace ums::carry
