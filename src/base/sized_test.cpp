// SPDX-License-Identifier: MIT
#include "base/sized.hpp"

#include <cstdint>

#include <gtest/gtest.h>

namespace {

using namespace ums;

struct options {
    std::size_t size = sizeof(options);
    std::uint64_t first = 1, second = 2;
};
// The struct of a caller that was compiled with a newer one.
struct newer {
    options as_known{.size = sizeof(newer)};
    std::uint64_t third = 0;
};
constexpr std::size_t older = sizeof(options) - sizeof(std::uint64_t);

TEST(sized_test, what_is_given_replaces_the_defaults) {
    options known;
    EXPECT_EQ(base::copy_sized(known, {.first = 7, .second = 8}, sizeof known), 0);
    EXPECT_EQ(known.first, 7u);
    EXPECT_EQ(known.second, 8u);
}

TEST(sized_test, an_older_caller_leaves_the_defaults_of_what_it_does_not_know) {
    options known;
    EXPECT_EQ(base::copy_sized(known, {.size = older, .first = 7, .second = 8}, older), 0);
    EXPECT_EQ(known.first, 7u);
    EXPECT_EQ(known.second, 2u);
    EXPECT_EQ(known.size, sizeof known);
}

TEST(sized_test, a_newer_caller_may_not_set_what_is_not_known_here) {
    options known;
    newer given;
    given.as_known.second = 8;
    EXPECT_EQ(base::copy_sized(known, given.as_known, sizeof known), 0);
    EXPECT_EQ(known.second, 8u);
    EXPECT_EQ(known.size, sizeof known);
    given.third = 1;
    EXPECT_EQ(base::copy_sized(known, given.as_known, sizeof known), -E2BIG);
}

TEST(sized_test, a_size_that_cannot_be_is_refused) {
    options known;
    for (const std::size_t size : {std::size_t{0}, older - 1, base::largest_size + 1, SIZE_MAX}) {
        EXPECT_EQ(base::copy_sized(known, {.size = size}, older), -EINVAL) << size;
        newer to{.as_known = {.size = size}};
        EXPECT_EQ(base::give_sized(to.as_known, known, older), -EINVAL) << size;
    }
    EXPECT_EQ(known.first, 1u);
}

TEST(sized_test, a_caller_is_given_as_much_as_it_has_room_for) {
    options small{.size = older, .first = 0, .second = 0};
    EXPECT_EQ(base::give_sized(small, {.first = 7, .second = 8}, older), 0);
    EXPECT_EQ(small.size, older);
    EXPECT_EQ(small.first, 7u);
    EXPECT_EQ(small.second, 0u);
    newer large{.third = 9};
    EXPECT_EQ(base::give_sized(large.as_known, {.first = 7, .second = 8}, older), 0);
    EXPECT_EQ(large.as_known.size, sizeof large);
    EXPECT_EQ(large.as_known.second, 8u);
    EXPECT_EQ(large.third, 0u);
}

}  // namespace
