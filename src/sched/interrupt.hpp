// SPDX-License-Identifier: MIT
#pragma once

// sched/interrupt.hpp: what a carrier needs so that its fiber can be stopped: a clock that interrupts its kernel
// thread in user mode (os/user_interrupt.hpp), and a small stack for the crossing (sched/stop.hpp).
//
// Both are made when they are first needed, by whoever arms the clock, without the allocator: the fiber may
// hold its lock. Most carriers never need them. A clock with a descriptor is precise to some 10 us; a process has at
// most `os::user_interrupt::most_events` of those, then the carriers get clocks that count in scheduler ticks.
//
// Threads:  arm() by whoever has a claim on the carrier, or by the carrier's thread inside its processor: one at a
//           time. again(), disarm() and close() by the carrier's thread: the first in the signal's handler, the others
//           while the carrier has no processor, so that nobody has a claim.

#include <cstddef>

#include "base/atomic.hpp"
#include "os/clock.hpp"
#include "os/interrupt_signal.hpp"
#include "os/user_interrupt.hpp"

namespace ums::sched {

class interrupt {
public:
    static constexpr std::size_t crossing_bytes = 64 * 1024;

    // The signal and the clock for all carriers; null: fibers are not stopped. While no carrier runs.
    static void use(const os::interrupt_signal* signal, os::user_interrupt::way how) noexcept;
    // Whether fibers are stopped: false also once the application has put its own handler in the place of ours.
    [[nodiscard]] static bool is_possible() noexcept;
    // For a carrier's thread, at its start: the application may have blocked the signal before it started us.
    static void unblock() noexcept;

    interrupt() noexcept = default;
    ~interrupt() { close(); }
    interrupt(const interrupt&) = delete;
    interrupt& operator=(const interrupt&) = delete;

    // One signal to the thread `tid` as soon as that has run for `after`. Replaces what was armed before. Where no clock is
    // to be had the fiber runs on until it next calls libums, and one line on standard error says so.
    void arm(int tid, os::nanoseconds after) noexcept;
    void again(os::nanoseconds after) noexcept {
        if (is_open()) clock_.arm(after);
    }
    void disarm() noexcept {
        if (is_open()) clock_.disarm();
    }
    void close() noexcept;

    // The upper end of the small stack. Requires: armed once.
    [[nodiscard]] char* crossing() const noexcept { return crossing_ + crossing_bytes; }

private:
    [[nodiscard]] bool is_open() const noexcept {
        return is_open_.load(base::acquire);  // sync(interrupt.open): sees the clock.
    }
    [[nodiscard]] bool open(int tid) noexcept;

    os::user_interrupt clock_;
    char* crossing_ = nullptr;
    base::atomic<bool> is_open_;
};

}  // namespace ums::sched
