// SPDX-License-Identifier: MIT
#include "carry/ownership.hpp"

#include "base/assert.hpp"
#include "os/cpu/membarrier.hpp"
#include "os/futex.hpp"

namespace ums::carry {

bool ownership::enter_slow() noexcept {
    for (;;) {
        busy_.store(1, base::relaxed);
        // Orders the store before the load where thieves cannot: see `symmetric`, and a thief that
        // is past its fence.
        base::full_fence();
        // sync(ownership.claim): as in enter().
        std::uint32_t seen = claim_.load(base::acquire);
        if ((seen & (claimed | vacant)) == 0) return true;
        let_go();  // Nothing was done inside.
        if ((seen & claimed) == 0) return false;
        for (int i = 0; i < 100 && (seen & claimed) != 0; ++i) {
            base::spin_pause();
            seen = claim_.load(base::relaxed);
        }
        // The kernel may have preempted the thief: do not burn its time.
        while ((seen & claimed) != 0) {
            if ((seen & holder_waits) == 0 &&
                !claim_.compare_exchange(seen, seen | holder_waits, base::relaxed, base::relaxed))
                continue;
            os::futex_wait(claim_, seen | holder_waits);
            seen = claim_.load(base::relaxed);
        }
    }
}

bool ownership::try_claim() noexcept {
    std::uint32_t seen = claim_.load(base::relaxed);
    if ((seen & (asked | vacant)) != 0) return false;
    // relaxed: nothing is claimed yet.
    if (!claim_.compare_exchange(seen, seen | asked, base::relaxed, base::relaxed)) return false;
    os::heavy_fence();
    // sync(ownership.claim): sees what an earlier thief did. seq_cst: before the load of busy,
    // which is seq_cst as well. (Alone it would be no fence before an acquire load.)
    seen = claim_.fetch_or(claimed, base::seq_cst);
    UMS_ASSERT((seen & (asked | claimed)) == asked, "two claim a carrier at a time");
    for (int i = 0; i < 50; ++i) {
        // sync(ownership.busy): sees what the holder did before leave(). seq_cst: after the claim.
        if (busy_.load(base::seq_cst) == 0) {
            // sync(ownership.claim): the processor may have gone and come back meanwhile, by
            // occupy(), and busy says nothing of what was done to it elsewhere.
            if ((claim_.load(base::acquire) & vacant) == 0) return true;
            break;
        }
        base::spin_pause();
    }
    unclaim();
    return false;
}

void ownership::unclaim() noexcept {
    // sync(ownership.claim): publishes the theft to the holder's next enter().
    const std::uint32_t seen = claim_.fetch_and(~(asked | claimed | holder_waits), base::release);
    UMS_ASSERT((seen & (asked | claimed)) == (asked | claimed),
               "a claim is given back that nobody has");
    if ((seen & holder_waits) != 0) os::futex_wake(claim_.address());
}

}  // namespace ums::carry
