// SPDX-License-Identifier: MIT
// variants: mprotect p1
#include "ums/stats.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "mem/stack_depot.hpp"
#include "support/conservation.hpp"
#include "support/scale.hpp"
#include "ums/ums.hpp"

namespace {

using namespace ums;

class stats_test : public conserving_test {};

TEST_F(stats_test, without_a_runtime_everything_is_zero) {
    for (int i = 0; i < 2; ++i) {
        const runtime_stats s = stats();
        EXPECT_EQ(s.spawned + s.finished + s.steals + s.stolen + s.idle_waits + s.wakes, 0u);
        EXPECT_EQ(s.slabs + s.stacks_made + s.stacks_warm + s.stacks_cold + s.stacks_trimmed +
                      s.mapped_bytes + s.stack_high_water_bytes,
                  0u);
        run({.processors = 2}, [] { fiber{[] {}}.join(); });
    }
    trim();  // Harmless.
}

TEST_F(stats_test, fibers_are_counted_when_they_are_made_and_when_they_end) {
    run({.processors = 2}, [] {
        EXPECT_EQ(stats().spawned, 1u);
        EXPECT_EQ(stats().finished, 0u);
        std::vector<fiber> all;
        for (int i = 0; i < 100; ++i) all.emplace_back([] { this_fiber::park(); });
        EXPECT_EQ(stats().spawned, 101u);
        EXPECT_EQ(stats().finished, 0u);
        for (fiber& f : all) f.ref().unpark();
        for (fiber& f : all) f.join();
        // A join may return a moment before the end is counted.
        while (stats().finished < 100) this_fiber::yield();
        EXPECT_EQ(stats().finished, 100u);
        EXPECT_EQ(stats().spawned, 101u);
    });
}

TEST_F(stats_test, every_stack_is_in_use_cached_warm_or_cold) {
    run({.processors = 1}, [] {
        std::vector<fiber> all;
        for (int i = 0; i < 2'000; ++i) all.emplace_back([] { this_fiber::park(); });
        runtime_stats s = stats();
        EXPECT_GE(s.stacks_made, 2'001u);
        EXPECT_LE(s.stacks_made, 2'001u + 64);
        EXPECT_GE(s.mapped_bytes, s.stacks_made * (256 * 1024 + mem::stack_depot::guard_bytes));
        for (fiber& f : all) f.ref().unpark();
        for (fiber& f : all) f.join();
        s = stats();
        // All of them except those in the processor's cache, and that of the fiber that asks.
        EXPECT_GE(s.stacks_warm + s.stacks_cold + 257, s.stacks_made);
        const std::size_t warm = s.stacks_warm;
        EXPECT_GT(warm, 0u);
        trim();
        s = stats();
        EXPECT_EQ(s.stacks_warm, 0u);
        EXPECT_GE(s.stacks_cold, warm);
        EXPECT_GE(s.stacks_trimmed, warm);
    });
}

TEST_F(stats_test, warm_stacks_beyond_the_limit_lose_their_memory) {
    run({.processors = 1, .warm_stacks = 0}, [] {
        std::vector<fiber> all;
        for (int i = 0; i < 2'000; ++i) all.emplace_back([] { this_fiber::park(); });
        for (fiber& f : all) f.ref().unpark();
        for (fiber& f : all) f.join();
        EXPECT_GT(stats().stacks_cold, 500u);
    });
}

[[gnu::noinline]] void touch(std::size_t bytes) {
    auto* frame = static_cast<volatile char*>(__builtin_alloca(bytes));
    for (std::size_t i = 0; i < bytes; i += 512) frame[i] = 1;
}

TEST_F(stats_test, the_deepest_stack_is_measured_if_asked_for) {
    if (under_asan) GTEST_SKIP() << "AddressSanitizer keeps frames elsewhere";
    run({.processors = 1, .stack_bytes = 256 * 1024}, [] {
        fiber{[] { touch(100 * 1024); }}.join();
        EXPECT_EQ(stats().stack_high_water_bytes, 0u);
    });
    run({.processors = 1, .stack_bytes = 256 * 1024, .measure_stacks = true}, [] {
        fiber{[] { touch(10 * 1024); }}.join();
        const std::size_t little = stats().stack_high_water_bytes;
        EXPECT_GE(little, 10u * 1024);
        EXPECT_LE(little, 60u * 1024);
        fiber{[] { touch(150 * 1024); }}.join();
        const std::size_t much = stats().stack_high_water_bytes;
        EXPECT_GE(much, 150u * 1024);
        EXPECT_LE(much, 200u * 1024);
        fiber{[] { touch(10 * 1024); }}.join();
        EXPECT_EQ(stats().stack_high_water_bytes, much);
    });
}

TEST_F(stats_test, a_fiber_can_ask_how_deep_its_own_stack_has_been) {
    if (under_asan) GTEST_SKIP() << "AddressSanitizer keeps frames elsewhere";
    EXPECT_EQ(this_fiber::stack_high_water_bytes(), 0u);  // The caller is a plain thread.
    run({.processors = 1, .stack_bytes = 512 * 1024}, [] {
        const std::size_t before = this_fiber::stack_high_water_bytes();
        EXPECT_GT(before, 0u);
        EXPECT_EQ(before % 4096, 0u);
        EXPECT_LT(before, 100u * 1024);
        touch(300 * 1024);
        EXPECT_GE(this_fiber::stack_high_water_bytes(), 300u * 1024);
        EXPECT_LE(this_fiber::stack_high_water_bytes(), 400u * 1024);
    });
}

TEST_F(stats_test, info_names_what_was_chosen) {
    const std::string before = info();
    for (const char* fact :
         {"version: ", "processors: ", "policy: ", "stack: ", "guard: ", "fence: "})
        EXPECT_NE(before.find(fact), before.npos) << fact << " in\n" << before;
    EXPECT_NE(before.find(std::string{"version: "} + version() + "\n"), before.npos);
    run({.processors = 3, .pin = true}, [] {
        const std::string facts = info();
        EXPECT_NE(facts.find("processors: " + std::to_string(cluster::standard().processors())),
                  facts.npos)
            << facts;
        EXPECT_NE(facts.find("pinned"), facts.npos) << facts;
    });
}

}  // namespace
