// SPDX-License-Identifier: MIT
#pragma once

// carry/ownership.hpp: a lock over the processor that a carrier holds, biased to the carrier in
// which the lock lies.
//
// The carrier enters and leaves for the price of two plain stores and a load; a thief pays a system
// call (os/cpu/membarrier.hpp). Everything of a processor that a thief may take (run queue,
// run-next slot) is touched only between enter() and leave(), or by a thief between try_claim() and
// unclaim(). A switch happens between enter() by the side that is left and leave() by the side that
// continues. So a fiber may be put into the queue before its registers are saved: no other thread
// can see it until they are.
//
// The processor itself may be taken too (sched/block/hand_off.hpp), by vacate(); the caller must be
// inside or hold a claim. From then on enter() fails until another thread gives the carrier a
// processor by occupy(). That is why the lock is the carrier's and not the processor's: a carrier
// that comes back from the kernel must find out by its own word, before it touches a processor that
// has another holder by now.
//
// Exclusion: a thief first asks: asked := 1, heavy fence. Only then it claims: claimed := 1, load
// busy, both seq_cst. The carrier: busy := 1, compiler fence, load the word. If the word is zero,
// then by the argument in os/cpu/membarrier.hpp the carrier's busy is visible when the thief's
// heavy fence returns, for as long as the carrier is inside; a thief that sees busy waits a little,
// then gives up. If the word is not zero, the carrier enters again, with a full fence between the
// two:
// of this and the thief's claim at least one sees the other, and a carrier that sees the claim
// takes busy back and waits. So both are never inside. Only the carrier waits without bound, and
// only for a thief that is inside, so there is no deadlock. The carrier never waits for a thief's
// heavy fence, which may sleep: while the word is asked, and not claimed yet, the carrier goes in
// and out, and pays a full fence.
//
// Without membarrier the word carries `symmetric` forever: the carrier always takes the slow path,
// which has a full fence.
//
// Rejected: a compare-and-swap per operation (11 ns of a 10 ns budget); rseq (a registration that
// the C library owns, and critical sections in assembly for each queue operation).

#include <cstdint>

#include "arch/sanitizer.hpp"
#include "base/assert.hpp"
#include "base/atomic.hpp"

namespace ums::carry {

class ownership {
public:
    // Requires: no thread is inside.
    void reset(bool asymmetric) noexcept {
        UMS_ASSERT(!is_inside(), "a carrier's lock is made anew while somebody is inside");
        claim_.store(asymmetric ? 0 : symmetric, base::relaxed);
    }

    // Returns false, without entering, if the carrier holds no processor.
    [[nodiscard]] UMS_ALWAYS_INLINE bool enter() noexcept {
        // relaxed: ordered before the load below by the thief's heavy fence.
        busy_.store(1, base::relaxed);
        base::compiler_fence();
        // sync(ownership.claim): zero here sees what the last thief did before unclaim().
        if (claim_.load(base::acquire) != 0) [[unlikely]]
            return enter_slow();
        return true;
    }

    // enter() for functions that call no other: returns false, without entering, also if a thief
    // asks. Then call enter().
    [[nodiscard]] UMS_ALWAYS_INLINE bool try_enter() noexcept {
        // relaxed, and the order: as in enter().
        busy_.store(1, base::relaxed);
        base::compiler_fence();
        // sync(ownership.claim): as in enter().
        if (claim_.load(base::acquire) != 0) [[unlikely]] {
            let_go();  // Nothing was done inside.
            return false;
        }
        return true;
    }

    UMS_ALWAYS_INLINE void leave() noexcept {
        publish();
        let_go();
    }

    // The two halves of leave(), for callers that change the TSan context in between. The holder of
    // a claim may give the processor to another kernel thread, and two threads in one context are
    // an error for ThreadSanitizer. So no thread may hold a claim before the processor's context is
    // left. Yet what was done inside is published from that context, because in no_sync mode the
    // fiber's context does not know of it.
    UMS_ALWAYS_INLINE void publish() noexcept { arch::happens_before(&busy_); }
    UMS_ALWAYS_INLINE void let_go() noexcept {
#if defined(UMS_TSAN)
        base::compiler_fence();
        // relaxed: publish() was the release, and this one would replace what it has said.
        busy_.store(0, base::relaxed);
#else
        // sync(ownership.busy): publishes the section, and a fiber's saved registers, to a thief.
        busy_.store(0, base::release);
#endif
    }

    // For a signal handler on the carrier's thread.
    [[nodiscard]] bool is_inside() const noexcept { return busy_.load(base::relaxed) != 0; }

    // For a thief. Costs a system call; returns false if the carrier is inside for long, holds no
    // processor, or another thief came first.
    bool try_claim() noexcept;
    void unclaim() noexcept;

    // The carrier no longer holds a processor. The caller must be inside or hold a claim.
    void vacate() noexcept {
        // sync(ownership.claim): a thief that claims this carrier later sees what was done to the
        // processor.
        const std::uint32_t before = claim_.fetch_or(vacant, base::release);
        UMS_ASSERT((before & vacant) == 0, "a processor leaves a carrier that holds none");
    }
    // The carrier holds a processor now. Called by the thread that gives it.
    void occupy() noexcept {
        // sync(ownership.claim): publishes the processor to a thief, and to enter().
        claim_.fetch_and(~vacant, base::release);
    }

private:
    static constexpr std::uint32_t claimed = 1, holder_waits = 2, symmetric = 4, vacant = 8,
                                   asked = 16;

    [[nodiscard, gnu::noinline]] bool enter_slow() noexcept;

    base::atomic<std::uint32_t> busy_;
    base::atomic<std::uint32_t> claim_;
};

}  // namespace ums::carry
