// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/trace/record.hpp: the records of libums as they lie in its rings
// (src/sched/record/trace.hpp).

#include <cstdint>
#include <string>
#include <vector>

namespace tool::tracing {

enum class event : std::uint8_t {
    none,
    run,
    yield,
    park,
    end,
    spawn,
    name,
    unpark,
    timer,
    io,
    steal,
    migrate,
    hand_off,
    back,
    stop,
    mark,
    more,
    last = more,
};

// 32 bytes, as in the ring.
struct raw_record {
    std::uint64_t when = 0, what = 0, argument = 0, other = 0;
};

struct record {
    std::int64_t when = 0;  // CLOCK_MONOTONIC, ns.
    event what = event::none;
    std::uint32_t ring = 0;   // Index in recording::rings.
    std::uint32_t place = 0;  // The position in what was read of the ring.
    std::uint64_t fiber = 0, argument = 0, other = 0;
};

struct ring {
    static constexpr std::uint32_t outside = ~std::uint32_t{0};
    // The processor's index in the cluster; outside: the ring of threads without one.
    std::uint32_t processor = outside;
    std::string cluster;
    std::uint64_t lost = 0;  // Records that were overwritten before they were read.
    std::vector<raw_record> raw;
    // In a live process: nothing writes it now, because its processor is gone or does not record.
    bool is_free = false;
    // In a live process: how many of `raw` are from before a gap in the recording.
    std::size_t before_gap = 0;
};

// Times and spans of a file are anybody's. They add up to the end of numbers, not beyond.
[[nodiscard]] constexpr std::int64_t in_bounds(std::int64_t ns) {
    constexpr std::int64_t most = std::int64_t{1} << 61;
    return ns < -most ? -most : ns > most ? most : ns;
}
[[nodiscard]] constexpr std::int64_t added(std::int64_t a, std::int64_t b) {
    std::int64_t sum = 0;
    if (!__builtin_add_overflow(a, b, &sum)) return sum;
    return a < 0 ? INT64_MIN : INT64_MAX;
}

// The same moment, twice, on both clocks.
struct clock_pair {
    std::uint64_t stamp = 0;
    std::int64_t ns = 0;
};

struct recording {
    int process = 0;
    std::vector<ring> rings;
    clock_pair began, now;

    // All records in the order of their time; those before `from` (ns) are left out.
    [[nodiscard]] std::vector<record> in_order(std::int64_t from) const;
    [[nodiscard]] std::int64_t to_ns(std::uint64_t stamp) const;
    [[nodiscard]] std::uint64_t lost() const;
};

}  // namespace tool::tracing
