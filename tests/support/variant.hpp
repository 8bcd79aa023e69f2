// SPDX-License-Identifier: MIT
#pragma once

// support/variant.hpp: the long run of a test is the plain one. Its variants show that the same
// holds under another setting (cmake/unit_test.cmake), and there a shorter run does.

#include <cstdlib>

// The number for the plain test, or that for its variants.
inline int by_variant(int plain, int variant) noexcept {
    return std::getenv("TEST_VARIANT") == nullptr ? plain : variant;
}
