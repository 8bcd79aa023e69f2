// SPDX-License-Identifier: MIT

// The times that the benches of servers report.

#include "histogram.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace {

TEST(histogram, a_share_of_the_times_is_not_above_its_percentile) {
    bench::histogram times;
    for (std::uint64_t us = 1; us <= 1000; ++us) times.add(us * 1000);
    EXPECT_EQ(times.count(), 1000U);
    EXPECT_NEAR(times.us_at(0.5), 500, 500.0 / 64);
    EXPECT_NEAR(times.us_at(0.99), 990, 990.0 / 64);
    EXPECT_NEAR(times.us_at(0.999), 999, 999.0 / 64);
    EXPECT_NEAR(times.us_at(1), 1000, 1000.0 / 64);
}

TEST(histogram, every_time_is_kept_to_one_in_64) {
    for (std::uint64_t ns = 1; ns < (std::uint64_t{1} << 62U); ns += ns / 4 + 1) {
        bench::histogram one;
        one.add(ns);
        const auto exact = static_cast<double>(ns) / 1000;
        EXPECT_NEAR(one.us_at(1), exact, exact / 64) << ns;
    }
}

TEST(histogram, the_longest_time_has_a_place) {
    bench::histogram one;
    one.add(~std::uint64_t{0});
    EXPECT_GT(one.us_at(1), 1e16);
}

}  // namespace
