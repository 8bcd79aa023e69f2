// SPDX-License-Identifier: MIT
#include "base/random.hpp"

#include <gtest/gtest.h>

namespace {

using ums::base::random;

// The published sequence of splitmix64 from seed 0.
TEST(random, is_splitmix64) {
    random r{0};
    EXPECT_EQ(r.next(), 0xe220a8397b1dcdafu);
    EXPECT_EQ(r.next(), 0x6e789e6aa1b965f4u);
    EXPECT_EQ(r.next(), 0x06c45d188009454fu);
}

TEST(random, the_same_seed_gives_the_same_numbers) {
    random a{42}, b{42}, c{43};
    bool differs = false;
    for (int i = 0; i < 100; ++i) {
        const auto n = a.next();
        EXPECT_EQ(n, b.next());
        differs |= n != c.next();
    }
    EXPECT_TRUE(differs);
}

TEST(random, below_gives_every_number_under_the_bound_and_none_above) {
    random r{7};
    for (const std::uint32_t bound : {1u, 2u, 3u, 7u, 61u}) {
        std::uint32_t seen[61] = {};
        for (int i = 0; i < 61 * 200; ++i) {
            const std::uint32_t n = r.below(bound);
            ASSERT_LT(n, bound);
            ++seen[n];
        }
        for (std::uint32_t n = 0; n < bound; ++n)
            EXPECT_GT(seen[n], 61 * 200 / bound / 2) << n << " of " << bound;
    }
    for (int i = 0; i < 1000; ++i) EXPECT_LT(r.below(~0u), ~0u);
}

}  // namespace
