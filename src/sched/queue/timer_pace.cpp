// SPDX-License-Identifier: MIT
#include "sched/queue/timer_pace.hpp"

#include <algorithm>

namespace ums::sched {

namespace {

// How long a round may take while a deadline is pending.
constexpr os::nanoseconds longest_slice = 50'000;

// How many rounds the fired fibers have to get their turn: each round has at least one switch.
constexpr std::uint32_t longest_turn = 2 * timer_pace::most;

}  // namespace

unsigned timer_pace::look(os::nanoseconds now, os::nanoseconds next,
                          const run_queue& queue) noexcept {
    // A deadline that is far away need not be watched as closely.
    if (began_ != 0) {
        const os::nanoseconds each = (now - began_) / round_ + 1;
        const os::nanoseconds longest = std::max(longest_slice, (std::max(next, now) - now) / 4);
        round_ = static_cast<std::uint32_t>(
            std::clamp<os::nanoseconds>(longest / each, 1, run_queue::round));
    }
    began_ = now;
    since_fired_ = std::min(since_fired_ + 1, longest_turn);
    credit_ = std::min(credit_ + round_, run_queue::round);
    if (next > now) return 0;
    const std::uint32_t waiting = fired_from_ - queue.head();
    if (queue.looks_busy() && waiting - 1 < most && since_fired_ < longest_turn) return 0;
    const unsigned n = queue.looks_busy() ? credit_ / 2 : most;
    credit_ -= std::min(credit_, 2 * n);
    if (n == 0) return 0;
    fired_from_ = queue.head();
    since_fired_ = 0;
    return std::min(n, most);
}

}  // namespace ums::sched
