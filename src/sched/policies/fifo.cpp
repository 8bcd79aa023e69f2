// SPDX-License-Identifier: MIT
#include "sched/policies/fifo.hpp"

namespace ums::sched {

void fifo_policy::ready(fiber_ref f, unsigned) noexcept {
    os::lock_guard guard{lock_};
    queue_.push_back(f);
}

fiber_ref fifo_policy::next(unsigned) noexcept {
    os::lock_guard guard{lock_};
    return queue_.pop_front();
}

bool fifo_policy::empty(unsigned) const noexcept {
    os::lock_guard guard{lock_};
    return queue_.empty();
}

}  // namespace ums::sched
