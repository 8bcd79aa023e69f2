// SPDX-License-Identifier: MIT
#pragma once

// sched/lock/urgency.hpp: priority inheritance: a fiber that holds what a more urgent one waits for
// becomes as urgent.
//
// Each fiber or thread that waits for a mutex has a lender, on its stack. While a fiber holds that
// mutex, it is in that fiber's list of lenders. What the fiber inherits is the highest
// priority among its lenders, computed anew whenever one comes, goes or changes. If the fiber waits
// for a mutex itself, its own lender has changed then, and so the holder of that mutex is next:
// along the whole chain. In the same way everybody falls back when a lender gives up, or when the
// holder releases the mutex.
//
// A fiber that takes a mutex past the waiters is lent nothing until the next one begins to wait.
// The mutex has a flag that says whether its waiters lend to the holder, so that the holder's
// unlock() takes the slow path and ends that (sync/mutex.cpp).
//
// The lists of all fibers are guarded by one lock, `section`, which is taken only where somebody
// waits for a mutex while a cluster with priorities exists. It is taken under the lock of a mutex's
// list. A chain is followed for at most `longest` steps, and no further than priorities change: in
// a circle of fibers that wait for each other that ends once the change has gone round.

#include "os/lock.hpp"
#include "sched/fiber/fiber.hpp"

namespace ums::sched {

// One wait for a mutex.
struct lender {
    // Null if it does not wait, or nobody counted priorities when it began.
    parkable* who = nullptr;
    fiber* to = nullptr;     // The holder, whose lender it is.
    lender* next = nullptr;  // Among the holder's lenders, which form a ring.
    lender* previous = nullptr;
};

class urgency {
public:
    static constexpr unsigned longest = 1000;

    // Whether any fiber of this process may have a priority that counts. Most programs have none.
    [[nodiscard]] static bool counts() noexcept {
        // relaxed: it is set before such a cluster has a fiber.
        return clusters_.load(base::relaxed) != 0;
    }
    // Called by a cluster whose policy has priorities, when it is made, and when it is destroyed.
    static void add_cluster() noexcept { clusters_.fetch_add(1, base::relaxed); }
    static void remove_cluster() noexcept { clusters_.fetch_sub(1, base::relaxed); }

    // The priority that a waiter lends: 0 for a plain thread. In a cluster without priorities, what
    // a fiber asked for does not count, but what it was lent does.
    [[nodiscard]] static int of(const parkable& who) noexcept;

    // The lock. The caller holds that of the mutex's list, too.
    class section {
    public:
        section() noexcept : guard_{lock_} {}

    private:
        os::lock_guard guard_;
    };

    // --- Inside a section ---
    // `who` begins to wait, and lends nothing yet.
    static void begin(lender& d, parkable& who) noexcept;
    // It does not wait any more. settle_less() follows for the fiber that it lent to, which is
    // returned, or null.
    static fiber* end(lender& d) noexcept;
    // It waits for what `holder` holds. settle() follows.
    static void lend(lender& d, fiber& holder) noexcept;
    // It lends nothing any more. settle_less() follows for the fiber that it lent to.
    static void take_back(lender& d) noexcept;
    // The lenders of `f` have changed. Null if nothing is done. Cost: a look at each lender.
    static void settle(fiber* f) noexcept;
    // The same after one lend(), of `d`. Looks at no other lender unless `d` is the most urgent, so
    // that a crowd of waiters can come.
    static void settle_lent(const lender& d) noexcept;
    // The same after lenders of `f` went, which can only lower what it inherits. Looks at the
    // others until it finds one that lends as much as `f` has inherited. The next look begins
    // there, so that a crowd of waiters can go: all of them look at each lender about once for each
    // priority there is.
    static void settle_less(fiber* f) noexcept;

    // Called by a drained cluster before its end: settle() looks at the cluster of a fiber that
    // is lent to, which may be on its way to another one. Whatever settles after this sees where
    // the fibers went.
    static void wait_for_sections() noexcept { const section last; }

    // Around a fork(), on both sides of it: nobody changes a list of lenders meanwhile, since those
    // of the fiber that forks are used on.
    static void begin_fork() noexcept { lock_.acquire(); }
    static void end_fork() noexcept { lock_.release(); }

private:
    static constexpr int lent_zero = wishes::lent_zero;

    // What it lends, as wishes::inherited has it.
    [[nodiscard]] static std::uint32_t lent_by(const lender& d) noexcept {
        return static_cast<std::uint32_t>(of(*d.who) + lent_zero);
    }

    static inline constinit base::atomic<unsigned> clusters_;
    // Before a policy's lock, for raised().
    static inline constinit os::lock lock_{os::lock_rank::idle};
};

}  // namespace ums::sched
