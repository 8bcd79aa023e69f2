// SPDX-License-Identifier: MIT
#pragma once

// sched/ownership.hpp: a lock biased to the holder of a processor.
//
// The holder enters and leaves for the price of two plain stores and a load; a thief pays a system
// call (os/membarrier.hpp). Everything of a processor that a thief may take (run queue, run-next
// slot) is touched only between enter() and leave(), or by a thief between try_claim() and
// unclaim(). A switch happens between enter() by the side that is left and leave() by the side that
// continues, so a fiber may be put into the queue before its registers are saved: nobody can see it
// until they are.
//
// Exclusion. Holder: busy := 1; compiler fence; load claim. Thief: claim := 1; heavy fence; load busy. By the
// argument in os/membarrier.hpp at least one sees the other. The holder that sees a claim takes
// busy back and waits; the thief that sees busy waits a little, then gives up. So never both inside,
// and as only the holder waits without bound, and only for a thief that is inside, no deadlock.
//
// Without membarrier the word carries `symmetric` forever: the holder always takes the slow path,
// which has a full fence.
//
// Rejected: a compare-and-swap per operation (11 ns of a 10 ns budget); rseq (a registration that the C
// library owns, and critical sections in assembly for each queue operation).

#include <cstdint>

#include "arch/sanitizer.hpp"
#include "base/atomic.hpp"

namespace ums::sched {

class ownership {
public:
    // Requires: nobody inside.
    void reset(bool asymmetric) noexcept {
        claim_.store(asymmetric ? 0 : symmetric, base::relaxed);
    }

    UMS_ALWAYS_INLINE void enter() noexcept {
        // relaxed: ordered before the load below by the thief's heavy fence.
        busy_.store(1, base::relaxed);
        base::compiler_fence();
        // sync(ownership.claim): zero here sees what the last thief did before unclaim().
        if (claim_.load(base::acquire) != 0) [[unlikely]]
            enter_slow();
    }

    UMS_ALWAYS_INLINE void leave() noexcept {
        // sync(ownership.busy): publishes the section, and a fiber's saved registers, to a thief.
        busy_.store(0, base::release);
    }

    // For a thief. Costs a system call; false if the holder is inside for long or another thief came first.
    bool try_claim() noexcept;
    void unclaim() noexcept;

private:
    static constexpr std::uint32_t claimed = 1, holder_waits = 2, symmetric = 4;

    [[gnu::noinline]] void enter_slow() noexcept;

    base::atomic<std::uint32_t> busy_;
    base::atomic<std::uint32_t> claim_;
};

}  // namespace ums::sched
