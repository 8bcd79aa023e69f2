// SPDX-License-Identifier: MIT
#pragma once

// sched/block/permits.hpp: how many carriers of a cluster may be blocked in the kernel without a
// processor.
//
// A marked region (sched/block/blocking.hpp) takes a permit before it may give up its processor,
// and a fiber that gets none waits, parked. So there is always a carrier left for each processor,
// and marked regions cannot bring the cluster to a stop, however few carriers it may have. A call
// that blocks unmarked cannot be made to wait; past the bound its processor stays with it until a
// permit is free or the call returns.
//
// `most` is how many permits there are now. It changes with the number of processors.

#include "base/atomic.hpp"
#include "base/chain.hpp"
#include "os/lock.hpp"
#include "sched/fiber/parkable.hpp"

namespace ums::sched {

class permits {
public:
    // Takes a permit, and parks until there is one, in order of arrival.
    void take(unsigned most) noexcept;
    // Returns false if there is none, or others wait for it.
    [[nodiscard]] bool try_take(unsigned most) noexcept;
    // Gives the permit to the first waiter. Returns false if there is none, and the permit is free.
    bool give() noexcept;

    [[nodiscard]] bool any_free(unsigned most) noexcept;
    [[nodiscard]] unsigned used() const noexcept {
        return used_.load(base::relaxed);  // relaxed: a hint.
    }
    // How often take() had to wait.
    [[nodiscard]] std::uint64_t waits() const noexcept { return waits_.get(); }

private:
    struct waiter {
        parkable* who;
        waiter* next;
    };

    os::lock lock_{os::lock_rank::leaf};
    base::atomic<unsigned> used_;  // Changed under lock_.
    // Guarded by lock_:
    base::fifo<waiter, &waiter::next> waiters_;
    base::owned<std::uint64_t> waits_;
};

}  // namespace ums::sched
