// SPDX-License-Identifier: MIT
#pragma once

// sched/lock/bias_count.hpp: when a lock becomes biased (sched/lock/bias.hpp).
//
// A lock becomes biased after a number of waits in a row by fibers of one processor; the next time
// after four times as many, and so on, so that locks that change sides pay next to nothing for the
// attempt. Guarded by the lock.

#include <cstdint>

#include "base/atomic.hpp"
#include "sched/lock/bias.hpp"

namespace ums::sched {

struct bias_count {
    static inline constinit base::atomic<std::uint32_t> first{32};  // Tests set it. From 1 to 255.

    // Notes a wait, or the wake-up of a waiter. True: it is time to make the lock biased.
    [[nodiscard]] static bool note(std::uint32_t& last, std::uint32_t& count,
                                   std::uint32_t mine) noexcept {
        if (last != mine || mine == bias::none) [[unlikely]] {
            last = mine;
            count &= ~row;
            return false;
        }
        ++count;
        const std::uint32_t level = count >> level_at;
        // relaxed: it is only a number.
        if ((count & row) < first.load(base::relaxed) << 2 * level) [[likely]]
            return false;
        count = (level < most ? level + 1 : most) << level_at;
        return true;
    }

private:
    static constexpr std::uint32_t level_at = 24, row = (1u << level_at) - 1, most = 8;
};

}  // namespace ums::sched
