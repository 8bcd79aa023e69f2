// SPDX-License-Identifier: MIT
// variants: migrate fifo p1 nosync
#include "ums/parallel_for.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/both_worlds.hpp"
#include "support/conservation.hpp"
#include "support/scale.hpp"
#include "ums/cluster.hpp"
#include "ums/mutex.hpp"
#include "ums/run.hpp"
#include "ums/stats.hpp"
#include "ums/this_fiber.hpp"

namespace {

using ums::parallel_for;
namespace this_fiber = ums::this_fiber;

class parallel_for_test : public conserving_test {};

TEST_F(parallel_for_test, each_number_comes_once) {
    on_a_fiber_and_on_a_thread([] {
        for (const std::size_t n : {0, 1, 2, 3, 16, 17, 1000})
            for (const std::size_t grain : {0, 1, 2, 7, 999, 1000, 5000}) {
                std::vector<std::atomic<int>> calls(n);
                parallel_for(0, n, grain, [&](std::size_t i) { ++calls[i]; });
                EXPECT_TRUE(
                    std::all_of(calls.begin(), calls.end(), [](const auto& c) { return c == 1; }))
                    << n << ' ' << grain;
            }
    });
}

TEST_F(parallel_for_test, each_element_comes_once) {
    on_a_fiber_and_on_a_thread([] {
        std::deque<int> all(1000);
        std::iota(all.begin(), all.end(), 0);
        parallel_for(all.begin(), all.end(), 10, [](int& n) { n = -n; });
        for (int i = 0; i < 1000; ++i) EXPECT_EQ(all[static_cast<std::size_t>(i)], -i);
        std::atomic<int> sum = 0;
        parallel_for(all.cbegin(), all.cend(), [&](const int& n) { sum += n; });
        EXPECT_EQ(sum, -499'500);
        int numbers[5] = {};
        parallel_for(std::begin(numbers), std::end(numbers), 1, [](int& n) { n = 1; });
        EXPECT_EQ(std::accumulate(numbers, numbers + 5, 0), 5);
    });
}

template <class I>
void visit_to_the_limits() {
    using limits = std::numeric_limits<I>;
    // Nothing, and no wrap-around, if the last is before the first.
    parallel_for<I>(limits::max(), limits::min(), [](I) { ADD_FAILURE(); });
    std::set<I> seen;
    ums::mutex lock;
    const auto note = [&](I i) {
        const std::lock_guard guard{lock};
        EXPECT_TRUE(seen.insert(i).second);
    };
    const I near_min = static_cast<I>(limits::min() + 3),
            near_max = static_cast<I>(limits::max() - 3);
    parallel_for<I>(limits::min(), near_min, 1, note);
    parallel_for<I>(near_max, limits::max(), 1, note);
    EXPECT_EQ(seen, (std::set<I>{limits::min(), static_cast<I>(limits::min() + 1),
                                 static_cast<I>(limits::min() + 2), near_max,
                                 static_cast<I>(near_max + 1), static_cast<I>(near_max + 2)}));
}

TEST_F(parallel_for_test, numbers_may_be_of_any_type_and_at_its_limits) {
    ums::run({.processors = 2}, [] {
        visit_to_the_limits<std::int8_t>();
        visit_to_the_limits<std::uint16_t>();
        visit_to_the_limits<int>();
        visit_to_the_limits<std::int64_t>();
        visit_to_the_limits<std::uint64_t>();
        std::atomic<int> sum = 0;
        parallel_for(-5, 5, 2, [&](int i) { sum += i; });
        EXPECT_EQ(sum, -5);
        // All of them: the distance is no std::int8_t.
        std::atomic<int> calls = 0;
        parallel_for(std::int8_t{-128}, std::int8_t{127}, 10, [&](std::int8_t) { ++calls; });
        EXPECT_EQ(calls, 255);
    });
}

TEST_F(parallel_for_test, the_limits_may_be_of_different_types) {
    const auto first_of = [](auto first, auto last) {
        std::optional<std::int64_t> found;
        try {
            parallel_for(first, last, std::numeric_limits<std::size_t>::max(), [&](auto i) {
                if (found) throw std::logic_error{"the second"};
                found = static_cast<std::int64_t>(i);
            });
        } catch (const std::logic_error&) {
        }
        return found;
    };
    // The first number of some does not fit into the type of the last one.
    EXPECT_EQ(first_of(std::int64_t{-5'000'000'000}, 7), -5'000'000'000);
    EXPECT_EQ(first_of(std::int64_t{5'000'000'000}, 7), std::nullopt);
    EXPECT_EQ(first_of(0, 1u), 0);
    EXPECT_EQ(first_of(0u, -1), std::nullopt);
    EXPECT_EQ(first_of(std::uint8_t{255}, 256), 255);
    EXPECT_DEATH((void)first_of(-1, 1u), "from a negative number");
}

TEST_F(parallel_for_test, a_piece_is_grain_turns_in_a_row_on_one_fiber) {
    ums::run({.processors = 2}, [] {
        std::vector<ums::fiber_id> ran(95);
        const auto spawned = ums::stats().spawned;
        parallel_for(0, 95, 10,
                     [&](int i) { ran[static_cast<std::size_t>(i)] = this_fiber::get_id(); });
        EXPECT_EQ(ums::stats().spawned, spawned + 9);
        std::set<ums::fiber_id> fibers;
        for (std::size_t begin = 0; begin < 95; begin += 10) {
            for (std::size_t i = begin; i < std::min<std::size_t>(begin + 10, 95); ++i)
                EXPECT_EQ(ran[i], ran[begin]);
            EXPECT_TRUE(fibers.insert(ran[begin]).second);
        }
        EXPECT_EQ(ran[94], this_fiber::get_id());
    });
}

TEST_F(parallel_for_test, unless_told_otherwise_each_processor_gets_eight_pieces) {
    for (const unsigned processors : {1u, 2u})
        ums::run({.processors = processors}, [processors] {
            const auto spawned = ums::stats().spawned;
            parallel_for(0, 100'000, [](int) {});
            EXPECT_EQ(ums::stats().spawned, spawned + 8 * ums::cluster::standard().processors() - 1)
                << processors;
            const auto then = ums::stats().spawned;
            parallel_for(0, 3, [](int) {});
            EXPECT_EQ(ums::stats().spawned, then + 2);
        });
}

TEST_F(parallel_for_test, the_function_is_called_where_it_lies) {
    struct function {
        function() = default;
        function(const function&) = delete;
        void operator()(int) { ++calls; }
        std::atomic<int> calls = 0;
    };
    on_a_fiber_and_on_a_thread([] {
        function f;
        parallel_for(0, 100, 3, f);
        EXPECT_EQ(f.calls, 100);
        int sum = 0;
        parallel_for(0, 10, 100,
                     [&sum, own = std::make_unique<int>(1)](int) mutable { sum += *own; });
        EXPECT_EQ(sum, 10);
    });
}

TEST_F(parallel_for_test, an_exception_ends_the_loop_when_all_turns_are_over) {
    on_a_fiber_and_on_a_thread([] {
        std::atomic<int> begun = 0, ended = 0;
        struct at_the_end {
            std::atomic<int>& count;
            ~at_the_end() { ++count; }
        };
        try {
            parallel_for(0, 1000, 1, [&](int i) {
                ++begun;
                const at_the_end last{ended};
                this_fiber::yield();
                if (i == 123) throw std::runtime_error{"at 123"};
            });
            ADD_FAILURE();
        } catch (const std::runtime_error& e) {
            EXPECT_STREQ(e.what(), "at 123");
        }
        EXPECT_EQ(begun, ended);
    });
}

TEST_F(parallel_for_test, after_an_exception_no_piece_begins) {
    ums::run({.processors = 1}, [] {
        int calls = 0;
        const auto before = ums::stats().spawned;
        EXPECT_THROW(parallel_for(0, 1000, 10,
                                  [&](int) {
                                      ++calls;
                                      throw std::runtime_error{"at once"};
                                  }),
                     std::runtime_error);
        EXPECT_EQ(calls, 1);
        EXPECT_LE(ums::stats().spawned - before, 10U);  // On the way to the first of 100 pieces.
    });
}

TEST_F(parallel_for_test, of_many_exceptions_one_comes) {
    on_a_fiber_and_on_a_thread([] {
        for (int i = 0; i < 20; ++i)
            EXPECT_THROW(parallel_for(0, 100, 1,
                                      [](int) {
                                          this_fiber::yield();
                                          throw std::runtime_error{"each"};
                                      }),
                         std::runtime_error);
    });
}

TEST_F(parallel_for_test, loops_may_be_nested) {
    on_a_fiber_and_on_a_thread([] {
        const int n = scaled(60, 20);
        std::atomic<int> calls = 0;
        parallel_for(0, n, 1, [&](int i) { parallel_for(0, i, 1, [&](int) { ++calls; }); });
        EXPECT_EQ(calls, n * (n - 1) / 2);
    });
}

TEST_F(parallel_for_test, one_piece_needs_no_runtime) {
    int calls = 0;
    parallel_for(0, 10, [&](int) { ++calls; });
    parallel_for(0, 10, 10, [&](int) { ++calls; });
    EXPECT_EQ(calls, 20);
    EXPECT_THROW(parallel_for(0, 10, 1, [&](int) { ++calls; }), std::system_error);
    EXPECT_EQ(calls, 20);
}

}  // namespace
