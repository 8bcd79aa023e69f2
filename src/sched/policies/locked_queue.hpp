// SPDX-License-Identifier: MIT
#pragma once

// sched/policies/locked_queue.hpp: a queue of fibers behind a lock. For policy local_locked.

#include "os/lock.hpp"
#include "sched/fiber/access.hpp"
#include "ums/policy.hpp"

namespace ums::sched {

class locked_queue {
public:
    void push(fiber& f) noexcept {
        const os::lock_guard guard{lock_};
        queue_.push_back(access::ref(&f));
        size_.set(queue_.size());
    }
    // Returns the fiber that came first, or null.
    [[nodiscard]] fiber* pop() noexcept {
        if (looks_empty()) return nullptr;
        const os::lock_guard guard{lock_};
        fiber* const f = access::fiber_of(queue_.pop_front());
        size_.set(queue_.size());
        return f;
    }
    // A push() whose section came before this one has stored the size, and the caller sees it. A
    // push() that comes after sees what the caller did before. Without the lock, the pusher's
    // processor might look before its store of the size is visible.
    void settle() noexcept { const os::lock_guard guard{lock_}; }
    [[nodiscard]] bool looks_empty() const noexcept { return size_.get() == 0; }

private:
    os::lock lock_{os::lock_rank::policy};
    // Guarded by lock_:
    fiber_queue queue_;
    base::owned<std::size_t> size_;  // Others read it as a hint.
};

}  // namespace ums::sched
