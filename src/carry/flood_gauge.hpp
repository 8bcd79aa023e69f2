// SPDX-License-Identifier: MIT
#pragma once

// carry/flood_gauge.hpp: whether listening to records of switches is worth it.
//
// A reader listens, and tells after each of its turns how many records it read and whether it found a block. Too many
// records in a window are a flood, and so are too many turns in vain; where no block was found for a while, a tenth as
// many. Then it shall not listen for a lull: 10 ms, twice as long each time it is still so then, and half as long
// again once it is not. In a lull it looks every sixteenth of the time since a block was last found.
//
// Owned by one thread. Knows no clock: each call is told the time.

#include <algorithm>
#include <cstdint>

#include "os/clock.hpp"

namespace ums::carry {

class flood_gauge {
public:
    // More records than this in a window are a flood.
    static constexpr unsigned flood = 500;
    // More turns in which it found no block than this are one, too.
    static constexpr unsigned in_vain = 100;
    // So many, where no block was found for so long.
    static constexpr unsigned in_vain_if_rare = 10;
    static constexpr os::nanoseconds rare = 1'000'000'000;
    static constexpr os::nanoseconds window = 50'000'000;
    static constexpr os::nanoseconds shortest_lull = 10'000'000, longest_lull = 640'000'000;
    static constexpr os::nanoseconds shortest_look = 100'000, longest_look = 4'000'000;

    // Blocks count as frequent until `rare` later.
    explicit flood_gauge(os::nanoseconds now) noexcept : last_found_{now}, window_begun_{now} {}

    // A block was found.
    void found(os::nanoseconds now) noexcept {
        last_found_ = now;
        found_in_turn_ = true;
    }

    // At the end of a turn, with the records that were read in it. True: it shall not listen for a lull.
    [[nodiscard]] bool is_flooded(os::nanoseconds now, std::uint64_t records) noexcept {
        // After a lull half as many, in half the time, show that nothing has changed.
        const unsigned part = next_lull_ > shortest_lull ? 2 : 1;
        const unsigned most_in_vain = (now - last_found_ > rare ? in_vain_if_rare : in_vain) / part;
        if (now - window_begun_ > window / part) {
            if (records_ <= flood / part && in_vain_ <= most_in_vain)
                next_lull_ = std::max(next_lull_ / 2, shortest_lull);
            begin_window(now);
        }
        records_ += records;
        if (!found_in_turn_) ++in_vain_;
        found_in_turn_ = false;
        return records_ > flood / part || in_vain_ > most_in_vain;
    }

    // How long the lull is that begins now.
    [[nodiscard]] os::nanoseconds begin_lull() noexcept {
        const os::nanoseconds lull = next_lull_;
        next_lull_ = std::min(next_lull_ * 2, longest_lull);
        return lull;
    }
    // It listens again.
    void end_lull(os::nanoseconds now) noexcept {
        begin_window(now);
        found_in_turn_ = false;
    }

    // In a lull. Nothing that is of interest can block: a fourth as often.
    [[nodiscard]] os::nanoseconds time_to_next_look(os::nanoseconds now,
                                                    bool any_of_interest) const noexcept {
        const os::nanoseconds time =
            std::clamp((now - last_found_) / 16, shortest_look, longest_look);
        return any_of_interest ? time : std::min(4 * time, longest_look);
    }

private:
    void begin_window(os::nanoseconds now) noexcept {
        window_begun_ = now;
        records_ = 0;
        in_vain_ = 0;
    }

    os::nanoseconds last_found_;
    os::nanoseconds window_begun_;
    os::nanoseconds next_lull_ = shortest_lull;
    std::uint64_t records_ = 0;  // In the window, as the next.
    unsigned in_vain_ = 0;
    bool found_in_turn_ = false;
};

}  // namespace ums::carry
