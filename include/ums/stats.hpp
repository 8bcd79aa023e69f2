// SPDX-License-Identifier: MIT
#pragma once

// ums/stats.hpp: what the runtime has done and chosen. Counters are exact only while nothing runs.

#include <cstddef>
#include <cstdint>
#include <string>

#include "ums/export.hpp"

namespace ums {

struct runtime_stats {
    // Fibers of the default cluster.
    std::uint64_t spawned;
    std::uint64_t finished;
    // Work stealing: successful raids, and the fibers they brought.
    std::uint64_t steals;
    std::uint64_t stolen;
    // Waits of a processor that had nothing to run; idle processors woken by others.
    std::uint64_t idle_waits;
    std::uint64_t wakes;
    // Kernel threads of the default cluster that run fibers: now, and at most so far; those that wait for use.
    std::uint32_t carriers;
    std::uint32_t carriers_peak;
    std::uint32_t carriers_spare;
    std::uint64_t carriers_made;
    // Processors that went on to another carrier while a fiber was blocked in the kernel; why: a system call, a page
    // fault (or what is none of both), a marked region (ums::blocking) that a detector found blocked. Of all clusters.
    std::uint64_t hand_offs;
    std::uint64_t blocked_in_calls;
    std::uint64_t blocked_in_faults;
    std::uint64_t blocked_in_regions;
    // Fibers stopped: because they ran on without a processor, because their time slice was over.
    std::uint64_t stops;
    std::uint64_t preemptions;
    // Past the bound (options::carriers): regions that waited, blocked calls that kept their processor.
    std::uint64_t carrier_waits;
    std::uint64_t carrier_refusals;
    // How long after a block its processor went on: notice_us[i] counts those of less than 2^i us. The last: all others.
    static constexpr std::size_t notice_buckets = 24;
    std::uint64_t notice_us[notice_buckets];
    // Stacks.
    std::size_t slabs;
    std::size_t stacks_made;
    std::size_t stacks_warm;  // Free in the shared depot, with their memory.
    std::size_t stacks_cold;  // Free, without.
    std::size_t stacks_trimmed;
    std::size_t mapped_bytes;
    // The deepest use of any ended fiber's stack, in pages; 0 unless options::measure_stacks.
    std::size_t stack_high_water_bytes;
};

// Zeros if no runtime is running.
[[nodiscard]] UMS_EXPORT runtime_stats stats() noexcept;

// Gives the memory of all free stacks of the depot back to the kernel. Those in the processors'
// caches (at most 256 each) stay.
UMS_EXPORT void trim() noexcept;

// Version, and what the runtime chose on this machine and why, one fact a line. Chooses as a runtime
// with default options and this environment would, if none is running.
[[nodiscard]] UMS_EXPORT std::string info();

// "0.1.0"
[[nodiscard]] UMS_EXPORT const char* version() noexcept;

}  // namespace ums
