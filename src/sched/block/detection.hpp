// SPDX-License-Identifier: MIT
#pragma once

// sched/block/detection.hpp: the detector that watches the processors of all clusters, and what it
// has found.

#include "base/atomic.hpp"
#include "carry/detect/detector.hpp"
#include "ums/stats.hpp"

namespace ums::sched {

class processor;

struct detection {
    // Null if no detector looks. Set while no runtime runs.
    static inline constinit carry::detector* by = nullptr;
    [[nodiscard]] static bool is_on() noexcept { return by != nullptr; }

    // From now on the detector, if there is one, looks at the processor. Throws std::bad_alloc.
    static void begin(processor& p);
    static void end(processor& p) noexcept;

    // The detector calls this now and then while anything runs, one call at a time. Null if no code
    // asks for it.
    static inline constinit base::atomic<void (*)(os::nanoseconds now) noexcept> on_look;

    // A carrier that had nothing to run now runs a fiber, or one that was stopped with its fiber
    // continues. Returns what rests() needs.
    UMS_ALWAYS_INLINE static std::uint64_t runs() noexcept {
        return by != nullptr ? by->nudge() : 0;
    }
    // The carrier has nothing to run again, and is about to wait.
    static void rests(std::uint64_t look) noexcept {
        if (look != 0) by->call_off(look);
    }
    // It runs on, and something waits for it.
    static void keeps_waiting(std::uint64_t look) noexcept {
        if (look != 0) by->hurry(look);
    }

    // A carrier's sleep in a lock of the runtime's that is shorter is no block: most sections are
    // short, and the carrier of one that lasts has lost its CPU. The one that closes a descriptor
    // may last: see docs/design/fork-join.md. Set while no runtime runs; for tests.
    static inline constinit base::atomic<os::nanoseconds> short_sleep{100'000'000};
    // For os::lock_states::on_sleep.
    static void lock_sleep_begins() noexcept;
    static void lock_sleep_has_ended() noexcept;

    // How long after a block its processor moved on: see runtime_stats::notice_us. Also for readers
    // from outside.
    static inline constinit base::atomic<std::uint64_t> notices[runtime_stats::notice_buckets] = {};
    static inline constinit base::atomic<std::uint64_t> notice_ns{0};  // Their sum.

    // Adds what was found since forget(), which must be called while no runtime runs.
    static void add_to(runtime_stats& s) noexcept;
    static void forget() noexcept;
};

}  // namespace ums::sched
