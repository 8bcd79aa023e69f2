// SPDX-License-Identifier: MIT
#pragma once

// os/membarrier.hpp: an asymmetric fence. The frequent side pays nothing, the rare side pays all.
//
// A store followed by a load of something else may be reordered by the processor; a pair of such
// threads (Dekker) needs a full fence on both sides. heavy_fence() runs a full barrier on every CPU
// that runs a thread of this process, so the frequent side needs only a compiler_fence().
//
// The argument, used wherever the two are paired. Light side: store A; compiler_fence; load B.
// Heavy side: store B; heavy_fence; load A. The barrier runs on the light side's CPU at some point t.
// If t comes before its store to A is performed, then its load of B comes after t too, and sees the
// heavy side's store, which was performed before the barrier was sent. If t comes after, the store
// to A is visible before heavy_fence() returns, so the heavy side's load sees it. Either way at
// least one side sees the other's store. A thread that is not running has passed a full barrier when
// it was switched out.
//
// Where membarrier(2) is refused, asymmetric() is false and light sides must use full_fence().

namespace ums::os {

// Registers the process. `allowed` false forces the fallback (tests). Idempotent.
bool enable_asymmetric_fence(bool allowed) noexcept;

// Whether heavy_fence() orders other threads.
bool asymmetric() noexcept;

void heavy_fence() noexcept;

}  // namespace ums::os
