// SPDX-License-Identifier: MIT
#include "os/cpu/membarrier.hpp"

#include <linux/membarrier.h>

#include "base/assert.hpp"
#include "base/atomic.hpp"
#include "os/cpu/topology.hpp"
#include "os/system.hpp"

namespace ums::os {

namespace {

// Whether a light side that is made now may go without a fence.
constinit base::atomic<bool> is_offered;
// Whether such light sides may exist. It never becomes false again, because they are not counted.
constinit base::atomic<bool> is_relied_on;

// A filter that the program installed later may refuse membarrier, the kernel may have no memory
// for it, and a process that was restored from a checkpoint may have lost its registration. The
// light sides still rely on a barrier.
[[gnu::cold]] bool fence_otherwise() noexcept {
    if (system.membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0 &&
        system.membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0)
        return true;
    // This needs no memory and no registration, and takes milliseconds.
    if (system.membarrier(MEMBARRIER_CMD_GLOBAL) == 0) return true;
    return visit_all_cpus();
}

}  // namespace

bool enable_asymmetric_fence(bool allowed) noexcept {
    const bool is_possible =
        allowed && system.membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
    // relaxed: the release below orders it before the offer.
    if (is_possible) is_relied_on.store(true, base::relaxed);
    // sync(membarrier.offer): a light side that sees the offer comes after the line above.
    is_offered.store(is_possible, base::release);
    return is_possible;
}

bool asymmetric() noexcept {
    return is_offered.load(base::acquire);  // sync(membarrier.offer)
}

void heavy_fence() noexcept {
    // Orders the heavy side's own accesses. It also covers a light side that begins to rely on this
    // function right now: if the load below sees false, what the caller stored was visible before
    // the offer was made, so that light side sees it.
    base::full_fence();
    if (!is_relied_on.load(base::relaxed)) return;  // relaxed: the argument above.
    const bool is_fenced =
        system.membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0 || fence_otherwise();
    UMS_ASSERT(is_fenced,
               "membarrier and sched_setaffinity are refused since the runtime started: "
               "set UMS_DEBUG=membarrier=off");
}

}  // namespace ums::os
