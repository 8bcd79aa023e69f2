// SPDX-License-Identifier: MIT
#include "sched/block/permits.hpp"

#include "base/assert.hpp"
#include "sched/fiber/wait.hpp"
#include "sched/run/park.hpp"
#include "sched/run/wake.hpp"

namespace ums::sched {

void permits::take(unsigned most) noexcept {
    waiter self{&this_parkable(), nullptr};
    {
        const os::lock_guard guard{lock_};
        if (waiters_.empty() && used() < most) {
            used_.store(used() + 1, base::relaxed);
            return;
        }
        waiters_.push(self);
        waits_.add(1);
    }
    const wait now{*self.who, wait_kind::permit, this};
    park(park_kind::internal);
}

bool permits::try_take(unsigned most) noexcept {
    const os::lock_guard guard{lock_};
    if (!waiters_.empty() || used() >= most) return false;
    used_.store(used() + 1, base::relaxed);
    return true;
}

bool permits::give() noexcept {
    parkable* next = nullptr;
    {
        const os::lock_guard guard{lock_};
        UMS_ASSERT(used() != 0, "a permit is given back that nobody has taken");
        if (const waiter* first = waiters_.pop())
            next = first->who;
        else
            used_.store(used() - 1, base::relaxed);
    }
    if (next != nullptr) wake(*next);
    return next != nullptr;
}

bool permits::any_free(unsigned most) noexcept {
    const os::lock_guard guard{lock_};
    return waiters_.empty() && used() < most;
}

}  // namespace ums::sched
