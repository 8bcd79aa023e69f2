// SPDX-License-Identifier: MIT
#include "carry/flood_gauge.hpp"

#include <gtest/gtest.h>

namespace {

using namespace ums;
using gauge = carry::flood_gauge;

constexpr os::nanoseconds ms = 1'000'000, start = 7'000 * ms;

// Turns at equal distances, of two records each. Returns the time of the first at which it shall not listen, or 0.
os::nanoseconds flooded_at(gauge& g, os::nanoseconds from, os::nanoseconds distance,
                           os::nanoseconds until) {
    for (os::nanoseconds now = from; now < until; now += distance)
        if (g.is_flooded(now, 2)) return now;
    return 0;
}

TEST(flood_gauge, many_records_are_a_flood_although_blocks_are_found) {
    gauge g{start};
    g.found(start);
    EXPECT_FALSE(g.is_flooded(start, gauge::flood));
    g.found(start + 1);
    EXPECT_TRUE(g.is_flooded(start + 1, 1));
}

TEST(flood_gauge, records_of_an_earlier_window_do_not_count) {
    gauge g{start};
    EXPECT_FALSE(g.is_flooded(start, gauge::flood));
    EXPECT_FALSE(g.is_flooded(start + gauge::window + 1, gauge::flood));
}

TEST(flood_gauge, many_turns_in_vain_are_a_flood) {
    gauge g{start};
    EXPECT_EQ(flooded_at(g, start, ms * 2 / 5, start + 40 * ms), 0);  // 100 of them.
    EXPECT_EQ(flooded_at(g, start + 40 * ms, ms * 2 / 5, start + 50 * ms), start + 40 * ms);
}

TEST(flood_gauge, turns_that_find_a_block_are_not_in_vain) {
    gauge g{start};
    for (int i = 0; i < 240; ++i) {
        const os::nanoseconds now = start + i * ms / 10;
        g.found(now);
        EXPECT_FALSE(g.is_flooded(now, 2)) << i;
    }
}

TEST(flood_gauge, fewer_turns_in_vain_are_enough_where_no_block_was_found_for_a_while) {
    gauge g{start};
    // 500 turns a second. In the first second, and for one after each block, they are few.
    EXPECT_EQ(flooded_at(g, start, 2 * ms, start + gauge::rare), 0);
    g.found(start + gauge::rare);
    const os::nanoseconds again = start + 2 * gauge::rare;
    EXPECT_EQ(flooded_at(g, start + gauge::rare, 2 * ms, again), 0);
    const os::nanoseconds at = flooded_at(g, again, 2 * ms, again + 2 * gauge::window);
    EXPECT_NE(at, 0);
    // 150 are few at any time: looking now and then would cost more.
    gauge rarely{start};
    EXPECT_EQ(flooded_at(rarely, start, 20 * ms / 3, start + 3 * gauge::rare), 0);
}

TEST(flood_gauge, lulls_grow_while_it_is_a_flood_and_shrink_when_it_is_not) {
    gauge g{start};
    os::nanoseconds now = start;
    for (os::nanoseconds lull = gauge::shortest_lull; lull < gauge::longest_lull; lull *= 2) {
        EXPECT_EQ(g.begin_lull(), lull);
        now += lull;
        g.end_lull(now);
        // Half of a flood shows it now.
        EXPECT_TRUE(g.is_flooded(now, gauge::flood / 2 + 1));
    }
    EXPECT_EQ(g.begin_lull(), gauge::longest_lull);
    EXPECT_EQ(g.begin_lull(), gauge::longest_lull);
    g.end_lull(now);
    // Quiet windows, each half as long as the first.
    for (int i = 0; i < 3; ++i) {
        now += gauge::window;
        EXPECT_FALSE(g.is_flooded(now, 0));
    }
    EXPECT_EQ(g.begin_lull(), gauge::longest_lull / 8);
}

TEST(flood_gauge, looks_often_where_a_block_was_found_and_rarely_later) {
    gauge g{start};
    g.found(start);
    EXPECT_EQ(g.time_to_next_look(start, true), gauge::shortest_look);
    EXPECT_EQ(g.time_to_next_look(start + 16 * ms, true), ms);
    EXPECT_EQ(g.time_to_next_look(start + 16 * ms, false), gauge::longest_look);
    EXPECT_EQ(g.time_to_next_look(start + 8 * ms, false), 2 * ms);
    EXPECT_EQ(g.time_to_next_look(start + 9'000 * ms, true), gauge::longest_look);
}

}  // namespace
