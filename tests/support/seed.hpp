// SPDX-License-Identifier: MIT
#pragma once

// support/seed.hpp: random tests that can be repeated.
//
// test_seed() is a new number in each run, which is printed, or the number in the environment
// variable TEST_SEED.

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>

#include <gtest/gtest.h>

inline std::uint64_t test_seed() {
    const char* wanted = std::getenv("TEST_SEED");
    const std::uint64_t seed =
        wanted != nullptr ? std::strtoull(wanted, nullptr, 0) : std::random_device{}();
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    std::cout << "TEST_SEED=" << seed << " repeats "
              << (test != nullptr ? test->name() : "the program") << std::endl;
    return seed;
}
