// SPDX-License-Identifier: MIT
#pragma once

// windows/guard.hpp: two kinds of sections.
//
// uninterrupted: nobody suspends or terminates the calling thread inside (who tries waits for the
//                end), and blocking inside is hidden from a worker's scheduler. So a lock that is only held in
//                such sections is never held by somebody who does not run. Short, and may be nested.
// blocking:      the opposite: the caller is about to wait, and a worker's scheduler is told.

#include "base/atomic.hpp"
#include "os/lock.hpp"
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

// os/lock.hpp without a rank: the scheduler may call out to us with a lock of its own held
// (ums_completion_list_set_notify()), and under ours nothing of it is called.
class plain_lock {
public:
    void acquire() noexcept { os::lock_states::acquire(word_, word_.address()); }
    void release() noexcept { os::lock_states::release(word_, word_.address()); }

private:
    base::atomic<std::uint32_t> word_;
};

// Held in uninterrupted sections only.
class guard {
public:
    explicit guard(plain_lock& of) noexcept : lock_{of} { lock_.acquire(); }
    ~guard() { lock_.release(); }
    guard(const guard&) = delete;
    guard& operator=(const guard&) = delete;

private:
    uninterrupted section_;
    plain_lock& lock_;
};

}  // namespace ums::windows
