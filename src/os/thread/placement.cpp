// SPDX-License-Identifier: MIT
#include "os/thread/placement.hpp"

namespace ums::os {

void placement::begin(int tid, int cpu) noexcept {
    if (tid == 0 || sched_getaffinity(tid, sizeof before_, &before_) != 0) return;
    if (!CPU_ISSET(static_cast<unsigned>(cpu), &before_) || CPU_COUNT(&before_) == 1) return;
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(static_cast<unsigned>(cpu), &only);
    is_narrow_ = sched_setaffinity(tid, sizeof only, &only) == 0;
}

void placement::widen() noexcept {
    is_narrow_ = false;
    cpu_set_t all, now;
    CPU_ZERO(&all);
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) CPU_SET(cpu, &all);
    if (sched_setaffinity(0, sizeof all, &all) != 0 ||
        sched_getaffinity(0, sizeof now, &now) != 0 || !CPU_EQUAL(&now, &before_))
        sched_setaffinity(0, sizeof before_, &before_);
}

}  // namespace ums::os
