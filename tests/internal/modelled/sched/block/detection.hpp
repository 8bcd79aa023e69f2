// SPDX-License-Identifier: MIT
#pragma once

// For models, in place of sched/block/detection.hpp: the detector has strands of its own.

#include "sched/run/processor.hpp"

namespace ums::sched {

struct detection {
    static void begin(processor&) noexcept {}
    static void end(processor&) noexcept {}
    // Wakes the strand of the detector that releases fibers, if there is one.
    static std::uint64_t runs() noexcept {
        calls->fetch_add(1, base::acq_rel);
        os::futex_wake(calls->address());
        return 0;
    }
    static void rests(std::uint64_t) noexcept {}
    static void keeps_waiting(std::uint64_t) noexcept {}
    static inline base::atomic<std::uint32_t>* calls = nullptr;
};

}  // namespace ums::sched
