// SPDX-License-Identifier: MIT
#include "os/thread/placement.hpp"

namespace ums::os {

void placement::begin(int tid, int cpu) noexcept {
    if (sched_getaffinity(tid, sizeof before_, &before_) != 0) return;
    if (!CPU_ISSET(static_cast<unsigned>(cpu), &before_) || CPU_COUNT(&before_) == 1) return;
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(static_cast<unsigned>(cpu), &only);
    is_narrow_ = sched_setaffinity(tid, sizeof only, &only) == 0;
}

void placement::widen() noexcept {
    is_narrow_ = false;
    sched_setaffinity(0, sizeof before_, &before_);
}

}  // namespace ums::os
