// SPDX-License-Identifier: MIT
#include "os/mapped_array.hpp"

#include <csignal>
#include <random>
#include <vector>

#include "internal/failing_calls.hpp"
#include "support/child.hpp"
#include "support/seed.hpp"

namespace {

using ums::os::failing_calls;
using ums::os::mapped_array;

TEST(mapped_array, starts_empty_and_maps_nothing) {
    failing_calls calls;
    const mapped_array<int> a;
    EXPECT_TRUE(a.empty());
    EXPECT_EQ(a.size(), 0u);
    EXPECT_EQ(calls.made(failing_calls::mmap), 0u);
}

TEST(mapped_array, keeps_its_values_while_it_grows) {
    struct pair {
        std::size_t a, b;
    };
    failing_calls calls;
    mapped_array<pair> array;
    constexpr std::size_t n = 100'000;
    for (std::size_t i = 0; i < n; ++i) array.push_back({i, ~i});
    ASSERT_EQ(array.size(), n);
    for (std::size_t i = 0; i < n; ++i) {
        ASSERT_EQ(array[i].a, i);
        ASSERT_EQ(array[i].b, ~i);
    }
    // It doubles from a page of 256 pairs to 131,072.
    EXPECT_EQ(calls.made(failing_calls::mmap), 1u);
    EXPECT_EQ(calls.made(failing_calls::mremap), 9u);
}

TEST(mapped_array, behaves_as_a_vector_under_random_operations) {
    std::mt19937_64 rng{test_seed()};
    mapped_array<std::uint64_t> array;
    std::vector<std::uint64_t> model;
    for (int i = 0; i < 200'000; ++i) {
        // Phases that mostly grow, then mostly shrink.
        const bool growing = (i / 20'000) % 2 == 0;
        const auto dice = rng() % 10;
        if (dice < (growing ? 8 : 2)) {
            const auto value = rng();
            array.push_back(value);
            model.push_back(value);
        } else if (!model.empty()) {
            array.pop_back();
            model.pop_back();
        }
        if (!model.empty()) {
            const auto at = rng() % model.size();
            ASSERT_EQ(array[at], model[at]);
            array[at] = model[at] = rng();
        } else {
            array.shrink();
        }
        if (i % 50'000 == 49'999) {
            array.clear();
            model.clear();
        }
        ASSERT_EQ(array.size(), model.size());
        ASSERT_EQ(array.empty(), model.empty());
    }
}

TEST(mapped_array, gives_back_every_byte_it_mapped) {
    failing_calls calls;
    {
        mapped_array<int> array;
        for (int i = 0; i < 5'000; ++i) array.push_back(i);
        EXPECT_EQ(calls.mapped_bytes(), 32'768);
        while (!array.empty()) array.pop_back();
        array.shrink();
        EXPECT_EQ(calls.mapped_bytes(), 0);
        array.push_back(1);
        EXPECT_EQ(array[0], 1);
        EXPECT_EQ(calls.mapped_bytes(), 4'096);
        array.pop_back();
        array.shrink();  // A page is kept.
        EXPECT_EQ(calls.mapped_bytes(), 4'096);
    }
    EXPECT_EQ(calls.mapped_bytes(), 0);
}

const child_program out_of_memory{"out_of_memory", [](const child_arguments& arguments) {
                                      failing_calls calls;
                                      mapped_array<int> array;
                                      if (arguments.at(0) == "mmap")
                                          calls.fail(failing_calls::mmap, 1);
                                      if (arguments.at(0) == "mremap")
                                          calls.fail(failing_calls::mremap, 2);
                                      for (int i = 0; i < 5'000; ++i) array.push_back(i);
                                      return 0;
                                  }};

TEST(mapped_array, running_out_of_memory_is_fatal_and_says_so) {
    for (const auto& [call, entries] : {std::pair{"mmap", "0"}, std::pair{"mremap", "2048"}}) {
        const child_end end = run_child("out_of_memory", {call});
        EXPECT_EQ(end.signal, SIGABRT) << end;
        EXPECT_EQ(end.err, std::string{"ums: out of memory: a queue of "} + entries + " entries\n");
    }
    EXPECT_EQ(run_child("out_of_memory", {"neither"}).code, 0);
}

}  // namespace
