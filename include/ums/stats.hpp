// SPDX-License-Identifier: MIT
#pragma once

// ums/stats.hpp: counters of the runtime, and its choices on this machine.
//
// Counters are exact only while nothing runs: a reader sees each of them at a slightly different
// moment. They count from the start of the runtime.
//
// Blocking: never parks. stats() takes a short lock. trim() holds the lock of the free stacks while
//           it works, so a spawn that needs a stack from the depot waits for it.
// Errors:   info() may throw std::bad_alloc.
// Cost:     stats() reads a few counters for each processor.

#include <cstddef>
#include <cstdint>
#include <string>

#include "ums/export.hpp"

namespace ums {

struct runtime_stats {
    // Fibers of the default cluster.
    std::uint64_t spawned;
    std::uint64_t finished;
    // Work stealing: successful raids, and the fibers that they brought.
    std::uint64_t steals;
    std::uint64_t stolen;
    // How often a processor with nothing to run waited; how often others woke an idle processor.
    std::uint64_t idle_waits;
    std::uint64_t wakes;
    // Kernel threads of the default cluster that can run fibers: now, the most so far, spare now,
    // and made since the start.
    std::uint32_t carriers;
    std::uint32_t carriers_peak;
    std::uint32_t carriers_spare;
    std::uint64_t carriers_made;
    // Default cluster: how often a processor moved to another carrier because a fiber was blocked
    // in the kernel.
    std::uint64_t hand_offs;
    // All clusters, by reason: a system call, a page fault (or neither of the two), a marked region
    // (ums::blocking) that a detector found blocked.
    std::uint64_t blocked_in_calls;
    std::uint64_t blocked_in_faults;
    std::uint64_t blocked_in_regions;
    // Default cluster, fibers stopped: without a processor; at the end of a time slice, or for a
    // pause.
    std::uint64_t stops;
    std::uint64_t preemptions;
    // At the bound (options::carriers): regions that waited, blocked calls that kept their
    // processor.
    std::uint64_t carrier_waits;
    std::uint64_t carrier_refusals;
    // How long after a block its processor was handed off: notice_us[i] counts delays of less than
    // 2^i us that no lower bucket counts; the last one counts all longer delays.
    static constexpr std::size_t notice_buckets = 24;
    std::uint64_t notice_us[notice_buckets];
    // Stacks.
    std::size_t slabs;
    std::size_t stacks_made;
    std::size_t stacks_warm;  // Free in the shared depot, with their memory.
    std::size_t stacks_cold;  // Free in the shared depot, without memory.
    std::size_t stacks_trimmed;
    std::size_t mapped_bytes;
    // The deepest use of an ended fiber's stack, in whole pages; 0 unless options::measure_stacks.
    std::size_t stack_high_water_bytes;
};

// Returns the counters; zeros if no runtime is running.
[[nodiscard]] UMS_EXPORT runtime_stats stats() noexcept;

// Gives the memory of all free stacks in the depot back to the kernel. Stacks in the processors'
// caches (at most 256 each) stay.
UMS_EXPORT void trim() noexcept;

// Returns the version, and what the runtime chose on this machine and why, one fact a line. If no
// runtime is running, it says what one with default options and this environment would choose.
[[nodiscard]] UMS_EXPORT std::string info();

// Returns the version, such as "0.2.0".
[[nodiscard]] UMS_EXPORT const char* version() noexcept;

}  // namespace ums
