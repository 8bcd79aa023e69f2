// SPDX-License-Identifier: MIT
#include "os/membarrier.hpp"

#include <linux/membarrier.h>

#include "base/assert.hpp"
#include "base/atomic.hpp"
#include "os/system.hpp"

namespace ums::os {

namespace {
bool available = false;  // Set once before the first processor exists, then read-only.
}

bool enable_asymmetric_fence(bool allowed) noexcept {
    available = allowed && system.membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
    return available;
}

bool asymmetric() noexcept { return available; }

void heavy_fence() noexcept {
    if (!available) {
        base::full_fence();
        return;
    }
    // sync: a full fence here too, for the heavy side's own order.
    base::full_fence();
    const long result = system.membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    UMS_ASSERT(result == 0, "membarrier failed after it was registered");
}

}  // namespace ums::os
