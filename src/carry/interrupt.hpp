// SPDX-License-Identifier: MIT
#pragma once

// carry/interrupt.hpp: the clock that interrupts a carrier's kernel thread in user mode (os/user_interrupt.hpp),
// so that what runs there can be stopped.
//
// It is made when it is first needed, by whoever arms it, without the allocator: what runs there may hold its
// lock. Most carriers never need one. A clock with a descriptor is precise to some 10 us; a process has at
// most `os::user_interrupt::most_events` of those, then the carriers get clocks that count in scheduler ticks.
//
// With it may come a small stack (`stack_bytes`), made at the same time: what the handler needs to leave
// the stack of what was stopped (sched/stop.hpp).
//
// Threads:  arm() by whoever has a claim on the carrier, or by the carrier's thread while it is inside: one at a
//           time. again(), disarm() and close() by the carrier's thread: the first in the signal's handler, the others
//           while the carrier carries nothing, so that nobody has a claim.

#include <cstddef>

#include "base/atomic.hpp"
#include "os/clock.hpp"
#include "os/interrupt_signal.hpp"
#include "os/user_interrupt.hpp"

namespace ums::carry {

// The signal and the kind of clock that carriers of one kind share.
class interrupt_source {
public:
    // Null: nothing is stopped. While no such carrier runs.
    void set(const os::interrupt_signal* signal, os::user_interrupt::way how) noexcept;
    // Whether anything is stopped: false also once the application has put its own handler in the place of ours.
    [[nodiscard]] bool is_possible() const noexcept;
    // For a carrier's thread, at its start: the application may have blocked the signal before it started us.
    void unblock() const noexcept;
    // 0, or -errno: what is wrong.
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

    // One signal to the thread `tid` as soon as that has run for `after`. Replaces what was armed before. Where no clock is
    // to be had what runs there runs on until it next calls libums, and one line on standard error says so.
    void arm(int tid, os::nanoseconds after) noexcept;
    void again(os::nanoseconds after) noexcept {
        if (is_open()) clock_.arm(after);
    }
    void disarm() noexcept {
        if (is_open()) clock_.disarm();
    }
    void close() noexcept;

    // The upper end of the small stack. Requires: armed once.
    [[nodiscard]] char* stack() const noexcept { return stack_ + stack_bytes_; }

private:
    [[nodiscard]] bool is_open() const noexcept {
        return is_open_.load(base::acquire);  // sync(interrupt.open): sees the clock.
    }
    [[nodiscard]] bool open(int tid) noexcept;

    const interrupt_source& source_;
    const std::size_t stack_bytes_;
    os::user_interrupt clock_;
    char* stack_ = nullptr;
    base::atomic<bool> is_open_;
};

}  // namespace ums::carry
