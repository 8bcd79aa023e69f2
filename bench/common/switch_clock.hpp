// SPDX-License-Identifier: MIT
#pragma once

// bench/common/switch_clock.hpp: the cycles from one runner's yield to the next runner's return
// from its own.
//
// This is the method of the public ContextSwitchTests programs. The start is shared, so the
// interval spans exactly one switch; beside every switch an empty pair of readings is timed, and
// its mean is subtracted. It is meaningful only if all runners share one CPU.

#include <atomic>
#include <cstdint>

#include "clock.hpp"

namespace bench {

class switch_clock {
public:
    void before() noexcept { start_.store(cycles(), relaxed); }

    void after() noexcept {
        const auto stop = cycles();
        add(switches_cycles_, stop - start_.load(relaxed));
        const auto first = cycles();
        const auto second = cycles();
        add(reads_cycles_, second - first);
        add(switches_, 1);
    }

    double cycles_per_switch() const noexcept {
        const auto total = static_cast<double>(switches_cycles_.load(relaxed));
        const auto reads = static_cast<double>(reads_cycles_.load(relaxed));
        return (total - reads) / static_cast<double>(switches_.load(relaxed));
    }

private:
    using counter = std::atomic<std::uint64_t>;
    // relaxed: there is one CPU, so program order is all that is needed. A native thread preempted
    // between the load and the store loses one sample of a million; a locked addition would cost
    // more than a fiber switch.
    static constexpr auto relaxed = std::memory_order_relaxed;
    static void add(counter& to, std::uint64_t n) noexcept {
        to.store(to.load(relaxed) + n, relaxed);
    }

    counter start_{0};
    counter switches_cycles_{0};
    counter reads_cycles_{0};
    counter switches_{0};
};

}  // namespace bench
