// SPDX-License-Identifier: MIT
#pragma once

// windows/guard.hpp: two kinds of sections.
//
// uninterrupted: nobody suspends or terminates the calling thread inside (who tries waits for the
//                end), and blocking inside is hidden from a worker's scheduler. So a lock that is only held in
//                such sections is never held by somebody who does not run. Short, and may be nested.
// blocking:      the opposite: the caller is about to wait, and a worker's scheduler is told.

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

    // For the signal handler of suspension: whether to act later, which it then notes.
    static bool defer() noexcept;
};

class blocking {
public:
    blocking() noexcept { worker_will_block(); }
    ~blocking() { worker_has_blocked(); }
    blocking(const blocking&) = delete;
    blocking& operator=(const blocking&) = delete;
};

// Holds a lock of base/lock.hpp, in an uninterrupted section. Under it nothing of the UMS API is called,
// which may itself call out to us with a lock of its own held (ums_completion_list_set_notify()).
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
