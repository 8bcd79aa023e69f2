// SPDX-License-Identifier: MIT
#include "os/lock.hpp"

#include <linux/membarrier.h>

#include "os/system.hpp"
#include "os/thread_slot.hpp"

namespace ums::os {

namespace {

// Whether all later releases see what was stored before. Not heavy_fence(), because locks are also
// used where no runtime has started, and while one starts or stops.
bool order_releases() noexcept {
    base::full_fence();
    if (system.membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0) return true;
    return system.membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0 &&
           system.membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0;
}

}  // namespace

lock_states::sleeper::sleeper(const void* address) noexcept
    // relaxed: the fence that follows orders it before the look at the word.
    : count_{(sleepers(address).fetch_add(1, base::relaxed), sleepers(address))},
      is_ordered_{order_releases()} {
    if (thread_slot() != nullptr && on_sleep.begins != nullptr) on_sleep.begins();
}

lock_states::sleeper::~sleeper() {
    if (thread_slot() != nullptr && on_sleep.has_ended != nullptr) on_sleep.has_ended();
    // relaxed: a release that still sees the sleeper wakes no thread.
    count_.fetch_sub(1, base::relaxed);
}

}  // namespace ums::os
