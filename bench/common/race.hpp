// SPDX-License-Identifier: MIT
#pragma once

// bench/common/race.hpp: a common start and finish for N runners.
//
// The clock runs from the moment all runners exist and have started (so that neither their creation
// nor the first touch of their stacks is measured) until the last one has crossed the line (so that
// joining them is not measured either). Runners wait at the start by yielding: waking N blocked
// runners would be a cost of its own, and a different one for each runtime.

#include <atomic>
#include <cstdint>

#include "clock.hpp"

namespace bench {

class race {
public:
    explicit race(std::uint64_t runners) : runners_{runners}, left_{runners} {}

    template <class Yield>
    void start(Yield yield) {
        // sync(race_arrive): open() sees everything that a runner did before the start.
        arrived_.fetch_add(1, std::memory_order_release);
        // sync(race_go): pairs with the store in open().
        while (!go_.load(std::memory_order_acquire)) yield();
    }

    void finish() {
        // sync(race_finish): the last runner reads the clock after the work of all.
        if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) end_ns_ = now_ns();
    }

    template <class Yield>
    void open(Yield yield) {
        // sync(race_arrive)
        while (arrived_.load(std::memory_order_acquire) != runners_) yield();
        begin_ns_ = now_ns();
        // sync(race_go)
        go_.store(true, std::memory_order_release);
    }

    // Requires: all runners have been joined.
    std::uint64_t ns() const { return end_ns_ - begin_ns_; }

private:
    const std::uint64_t runners_;
    std::uint64_t begin_ns_ = 0;
    std::uint64_t end_ns_ = 0;
    std::atomic<std::uint64_t> arrived_{0};
    std::atomic<std::uint64_t> left_;
    std::atomic<bool> go_{false};
};

}  // namespace bench
