// SPDX-License-Identifier: MIT
#pragma once

// carry/interrupt.hpp: the clock that interrupts a carrier's kernel thread in user mode
// (os/signal/user_interrupt.hpp), so that the code running there can be stopped.
//
// The thread that first arms it makes it, without the allocator, whose lock may be held by the code
// that runs there. Most carriers never need a clock. A clock with a descriptor is precise to some
// 10 us; a process has at most `os::user_interrupt::most_events` of those, and further carriers get
// clocks that count in scheduler ticks.
//
// A small stack (`stack_bytes`) may come with it, made at the same time: the handler needs it to
// leave the stack of the stopped code (sched/block/stop.hpp).
//
// Threads:  arm() is called by a thread that holds a claim on the carrier, or by the carrier's
//           thread while it is inside: one at a time. The carrier's thread calls again(), disarm()
//           and close(): the first in the signal's handler, the others while the carrier carries
//           nothing, so that no thread holds a claim.

#include <cstddef>

#include "base/atomic.hpp"
#include "os/clock.hpp"
#include "os/signal/interrupt_signal.hpp"
#include "os/signal/user_interrupt.hpp"

namespace ums::carry {

// The signal and the kind of clock that carriers of one kind share.
class interrupt_source {
public:
    // Null if nothing is stopped. Call it while no such carrier runs.
    void set(const os::interrupt_signal* signal, os::user_interrupt::way how) noexcept;
    // Whether anything can be stopped. Also false once the application has replaced our handler by
    // its own.
    [[nodiscard]] bool is_possible() const noexcept;
    // For a carrier's thread, at its start, because the application may have blocked the signal
    // before it started us.
    void unblock() const noexcept;
    // Returns 0, or -errno.
    [[nodiscard]] long open(os::user_interrupt& clock, int tid) const noexcept;

private:
    const os::interrupt_signal* signal_ = nullptr;
    os::user_interrupt::way how_ = os::user_interrupt::way::timer;
};

class interrupt {
public:
    explicit interrupt(const interrupt_source& source, std::size_t stack_bytes = 0) noexcept
        : source_{source}, stack_bytes_{stack_bytes} {}
    ~interrupt() { close(); }
    interrupt(const interrupt&) = delete;
    interrupt& operator=(const interrupt&) = delete;

    // Sends one signal to the thread `tid` as soon as that has run for `after`. Replaces what was
    // armed before. If the kernel grants no clock, the code there runs on until it next calls
    // libums, and one line on standard error says so.
    void arm(int tid, os::nanoseconds after) noexcept;
    void again(os::nanoseconds after) noexcept {
        if (is_open()) clock_.arm(after);
    }
    void disarm() noexcept {
        if (is_open()) clock_.disarm();
    }
    void close() noexcept;
    // In the child of a fork(), where the thread is not there: closes the clock's descriptor. It is
    // never used again.
    void leave_behind() noexcept {
        if (is_open()) clock_.close();
    }

    // Whether a clock was armed once, and could be made. Then there is a small stack, too.
    [[nodiscard]] bool is_open() const noexcept {
        return is_open_.load(base::acquire);  // sync(interrupt.open): sees the clock.
    }
    // The upper end of the small stack. Requires: is_open().
    [[nodiscard]] char* stack() const noexcept { return stack_ + stack_bytes_; }

private:
    [[nodiscard]] bool open(int tid) noexcept;

    const interrupt_source& source_;
    const std::size_t stack_bytes_;
    os::user_interrupt clock_;
    char* stack_ = nullptr;
    base::atomic<bool> is_open_;
};

}  // namespace ums::carry
