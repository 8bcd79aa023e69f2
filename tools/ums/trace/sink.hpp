// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/trace/sink.hpp: what a trace says, told in order to a sink that writes it down or adds
// it up.

#include <cassert>
#include <cstdint>
#include <string>
#include <string_view>

namespace tool::tracing {

enum class fiber_does : unsigned char {
    runs,
    is_ready,   // After a yield, a stop or a change of its cluster.
    was_woken,  // Ready, too: since a wake-up, or since it was made.
    waits,
    is_blocked,  // Blocked in the kernel, and its processor has moved on.
};
[[nodiscard]] constexpr const char* name_of(fiber_does d) {
    constexpr const char* names[] = {"runs", "ready", "ready (woken)", "waits",
                                     "blocked in the kernel"};
    assert(static_cast<unsigned>(d) < std::size(names) && "what a fiber does has no name");
    return names[static_cast<unsigned>(d)];
}

// A fiber in one state.
struct span {
    std::uint64_t fiber = 0;
    fiber_does does = fiber_does::runs;
    std::string_view waits_for;  // "mutex 0x7f..", if it waits.
    std::int64_t begin = 0, end = 0;
    std::uint32_t track = 0;     // If it runs: the processor, as numbered by processor().
    std::uint64_t woken_by = 0;  // If it runs: the number of the arrow that leads here; 0: none.
};

// A single moment.
struct moment {
    std::int64_t at = 0;
    std::uint64_t fiber = 0;  // The fiber on whose track it is; 0: it is on a processor's track.
    std::uint32_t track = 0;
    std::string_view text;
    std::uint64_t wakes = 0;  // The number of the arrow that begins here; 0: none.
};

class sink {
public:
    virtual ~sink() = default;
    // Each of these is called before anything else is said of the processor or fiber.
    virtual void processor(std::uint32_t track, std::string_view name) = 0;
    virtual void fiber(std::uint64_t id, std::string_view name, std::string_view start) = 0;
    virtual void add(const span& s) = 0;
    virtual void add(const moment& m) = 0;
};

}  // namespace tool::tracing
