// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/profile/profile_data.hpp: a profile: what was sampled, with names.

#include <cstdint>
#include <string>
#include <vector>

namespace tool::profiling {

struct frame {
    std::string function;
    std::string file;  // Empty: not known, or not a function of the program.
    int line = 0;

    friend bool operator==(const frame&, const frame&) = default;
    friend auto operator<=>(const frame&, const frame&) = default;
};

struct sample {
    std::vector<frame> frames;  // Outermost first.
    bool is_on_cpu = false;
    std::string wait;  // For a waiting fiber, what it waits for.
    std::int64_t ns = 0;
    std::uint64_t count = 0;
};

struct profile_data {
    std::vector<sample> samples;
    std::string title;
    std::int64_t began_ns = 0;  // On the clock of the day.
    std::int64_t duration_ns = 0;
    std::int64_t period_ns = 0;   // The time between two looks at what is on a CPU.
    std::int64_t cpu_ns = 0;      // The process's CPU time as the kernel counts it; 0: not known.
    std::int64_t stopped_ns = 0;  // For how long the threads were stopped, all together.
    std::uint64_t stops = 0;
    std::uint64_t looks_off_cpu = 0;

    [[nodiscard]] std::int64_t total_ns(bool on_cpu) const {
        std::int64_t ns = 0;
        for (const sample& s : samples)
            if (s.is_on_cpu == on_cpu) ns += s.ns;
        return ns;
    }
};

// A profile.proto of pprof's, compressed by gzip. Sample types: cpu and off_cpu in nanoseconds,
// and samples.
[[nodiscard]] std::string to_pprof(const profile_data& p);

// A line for each stack: functions from the outermost, then microseconds. The first frame says
// whether the thread was on a CPU.
[[nodiscard]] std::string to_folded(const profile_data& p);

// A page that needs no network.
[[nodiscard]] std::string to_html(const profile_data& p);

}  // namespace tool::profiling
