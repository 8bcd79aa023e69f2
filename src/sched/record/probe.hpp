// SPDX-License-Identifier: MIT
#pragma once

// sched/record/probe.hpp: the events of sched/record/trace.hpp as USDT probes, for bpftrace, perf,
// SystemTap and gdb. docs/look-inside.md lists them with their arguments.
//
// A tool that attaches to a probe counts up the probe's semaphore. All probes have the same one,
// and while it is not zero the processors record. So the word of the processor that says whether a
// tool traces is the only branch here, too, and a yield costs the same as without probes.
//
// Rejected: probes without a semaphore at the places of the events. They fire without rings, but
// their arguments would have to be computed on every path, even if no tool watches it.

#include <cstdint>
#include <string_view>

#include "arch/sanitizer.hpp"

#if __has_include(<sys/sdt.h>)
#define UMS_HAS_PROBES 1
#else
#define UMS_HAS_PROBES 0
#endif

namespace ums::sched {

struct fiber;
enum class trace_event : std::uint8_t;

#if UMS_HAS_PROBES
extern "C" unsigned short ums_probe_users;

[[nodiscard]] UMS_ALWAYS_INLINE bool is_probed() noexcept {
    // relaxed: it only has to be seen in the end. The kernel writes it, or a debugger does.
    return __atomic_load_n(&ums_probe_users, __ATOMIC_RELAXED) != 0;
}
#else
[[nodiscard]] constexpr bool is_probed() noexcept { return false; }
#endif

// What a record says, as one probe or several. `processor` says whose ring it is in.
[[gnu::noinline]] void probe(std::uint32_t processor, trace_event e, std::uint64_t id,
                             std::uint64_t argument, std::uint64_t other) noexcept;
// What no record says, or only in parts.
[[gnu::noinline]] void probe_spawn(const fiber& f) noexcept;
[[gnu::noinline]] void probe_mark(std::uint64_t id, std::string_view text) noexcept;

}  // namespace ums::sched
