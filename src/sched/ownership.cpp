// SPDX-License-Identifier: MIT
#include "sched/ownership.hpp"

#include "os/futex.hpp"
#include "os/membarrier.hpp"

namespace ums::sched {

bool ownership::enter_slow() noexcept {
    for (;;) {
        busy_.store(1, base::relaxed);
        // Orders the store before the load when thieves cannot (see `symmetric`).
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
    if ((seen & (claimed | vacant)) != 0) return false;
    // sync(ownership.claim): sees what an earlier thief did.
    if (!claim_.compare_exchange(seen, seen | claimed, base::acquire, base::relaxed)) return false;
    os::heavy_fence();
    for (int i = 0; i < 50; ++i) {
        // sync(ownership.busy): sees what the holder did before leave().
        if (busy_.load(base::acquire) == 0) return true;
        base::spin_pause();
    }
    unclaim();
    return false;
}

void ownership::unclaim() noexcept {
    // sync(ownership.claim): publishes the theft to the holder's next enter().
    const std::uint32_t seen = claim_.fetch_and(~(claimed | holder_waits), base::release);
    if ((seen & holder_waits) != 0) os::futex_wake(claim_.address());
}

}  // namespace ums::sched
