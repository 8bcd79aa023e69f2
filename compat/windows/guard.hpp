// SPDX-License-Identifier: MIT
#pragma once

// windows/guard.hpp: two kinds of sections.
//
// uninterrupted: no thread suspends or terminates the calling thread inside (one that tries waits
// for the end of the section), and blocking inside is hidden from a worker's scheduler. So the
// holder of a lock that is only held in such sections always runs. Keep them short; they may be
// nested.
// blocking:      the opposite: the caller is about to wait, and its worker's scheduler is told.

#include <cstdint>

#include "base/lock.hpp"
#include "windows/worker.hpp"

namespace ums::windows {

class uninterrupted {
public:
    uninterrupted() noexcept;
    ~uninterrupted();
    uninterrupted(const uninterrupted&) = delete;
    uninterrupted& operator=(const uninterrupted&) = delete;

    // For the signal handler of suspension: whether it must act later; if so, the section notes it.
    static bool defer() noexcept;
};

class blocking {
public:
    blocking() noexcept { worker_will_block(); }
    ~blocking() { worker_has_blocked(); }
    blocking(const blocking&) = delete;
    blocking& operator=(const blocking&) = delete;
};

// Holds a lock of base/lock.hpp in an uninterrupted section. Do not call the UMS API under it: that
// may itself call us with a lock of its own held (ums_completion_list_set_notify()).
class guard {
public:
    explicit guard(std::uint32_t& lock) noexcept : lock_{lock} { compat::lock_word(lock_); }
    ~guard() { compat::unlock_word(lock_); }
    guard(const guard&) = delete;
    guard& operator=(const guard&) = delete;

private:
    uninterrupted section_;
    std::uint32_t& lock_;
};

}  // namespace ums::windows
