// SPDX-License-Identifier: MIT
#pragma once

// sched/run/plain_join.hpp: the plain threads that are in join().
//
// When a runtime stops, it waits for the ends of its fibers. A thread that has waited for such an
// end in join() may wake up later, and only then gives the fiber's stack back; so a stop waits for
// these threads, too.

#include <cstdint>

#include "base/atomic.hpp"
#include "os/futex.hpp"

namespace ums::sched {

class plain_join {
public:
    plain_join() noexcept {
        // relaxed: the joiner word, which is written afterwards, orders it before the fiber's end.
        joins.fetch_add(1, base::relaxed);
    }
    ~plain_join() {
        // sync(plain_join): the stack has been given back.
        if (joins.fetch_sub(1, base::release) == (stop_waits | 1)) os::futex_wake(joins.address());
    }
    plain_join(const plain_join&) = delete;
    plain_join& operator=(const plain_join&) = delete;

    // Requires: all fibers have ended.
    static void wait_for_all() noexcept {
        // sync(plain_join): see ~plain_join().
        std::uint32_t seen = joins.fetch_or(stop_waits, base::acquire) | stop_waits;
        while (seen != stop_waits) {
            os::futex_wait(joins, seen);
            seen = joins.load(base::acquire);
        }
        // relaxed: no thread waits for it. Another thread may have begun a join since.
        joins.fetch_and(~stop_waits, base::relaxed);
    }

    // In the child of a fork(): no plain thread is there.
    static void leave_behind() noexcept { joins.store(0, base::relaxed); }

    // Hints, for tests.
    [[nodiscard]] static bool any() noexcept {
        return (joins.load(base::relaxed) & ~stop_waits) != 0;
    }
    [[nodiscard]] static bool is_waited_for() noexcept {
        return (joins.load(base::relaxed) & stop_waits) != 0;
    }

private:
    static constexpr std::uint32_t stop_waits = 1u << 31;
    // How many there are; and whether a stop waits for them.
    static inline constinit base::atomic<std::uint32_t> joins;
};

}  // namespace ums::sched
