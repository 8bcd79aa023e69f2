// SPDX-License-Identifier: MIT
// variants: migrate fifo p1 nomembarrier
// (Not nosync, for the reason given in scope_test.cpp.)
#include "ums/value_scope.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <system_error>
#include <vector>

#include <gtest/gtest.h>

#include "support/both_worlds.hpp"
#include "support/conservation.hpp"
#include "support/scale.hpp"
#include "ums/run.hpp"
#include "ums/this_fiber.hpp"

namespace {

using ums::value_scope;
namespace this_fiber = ums::this_fiber;

class value_scope_test : public conserving_test {};

TEST_F(value_scope_test, join_returns_the_values_in_the_order_of_the_spawns) {
    on_a_fiber_and_on_a_thread([] {
        value_scope<int> all;
        EXPECT_TRUE(all.join().empty());
        const int n = scaled(1000, 100);
        for (int i = 0; i < n; ++i)
            all.spawn([i] {
                for (int k = i % 3; k > 0; --k) this_fiber::yield();
                return i;
            });
        std::vector<int> values = all.join();
        ASSERT_EQ(values.size(), static_cast<std::size_t>(n));
        for (int i = 0; i < n; ++i) EXPECT_EQ(values[static_cast<std::size_t>(i)], i);
        all.spawn([] { return 5; });
        EXPECT_EQ(all.join(), std::vector<int>{5});
        EXPECT_TRUE(all.join().empty());
    });
}

TEST_F(value_scope_test, arguments_options_and_tokens_reach_the_child) {
    on_a_fiber_and_on_a_thread([] {
        value_scope<std::string> all{{.name = "each"}};
        all.spawn([] { return this_fiber::name(); });
        all.spawn({.name = "own"}, [] { return this_fiber::name(); });
        all.spawn(
            [](const std::string& a, std::unique_ptr<int> n) { return a + std::to_string(*n); },
            "a", std::make_unique<int>(3));
        all.spawn([&](const std::stop_token& stop,
                      const char* text) { return stop == all.get_stop_token() ? text : "another"; },
                  "the token");
        EXPECT_EQ(all.join(), (std::vector<std::string>{"each", "own", "a3", "the token"}));
    });
}

TEST_F(value_scope_test, values_may_be_such_that_can_only_be_moved) {
    struct particular {
        explicit particular(int n) : value{std::make_unique<int>(n)} {}
        std::unique_ptr<int> value;
    };
    on_a_fiber_and_on_a_thread([] {
        value_scope<particular> all;
        for (int i = 0; i < 10; ++i) all.spawn([i] { return particular{i}; });
        const auto values = all.join();
        ASSERT_EQ(values.size(), 10u);
        EXPECT_EQ(*values[9].value, 9);
        value_scope<bool> yes;
        yes.spawn([] { return true; });
        EXPECT_EQ(yes.join(), std::vector<bool>{true});
    });
}

TEST_F(value_scope_test, the_first_exception_stops_the_others_and_drops_the_values) {
    const auto shared = std::make_shared<int>(1);
    on_a_fiber_and_on_a_thread([&] {
        value_scope<std::shared_ptr<int>> all;
        for (int i = 0; i < 10; ++i)
            all.spawn([&](const std::stop_token& stop) {
                while (!stop.stop_requested()) this_fiber::yield();
                return shared;
            });
        all.spawn([]() -> std::shared_ptr<int> { throw std::runtime_error{"the cause"}; });
        EXPECT_THROW(all.join(), std::runtime_error);
        EXPECT_EQ(shared.use_count(), 1);
        EXPECT_TRUE(all.get_stop_token().stop_requested());
        EXPECT_TRUE(all.join().empty());
        all.spawn([&] { return shared; });
        EXPECT_EQ(all.join().size(), 1u);
    });
}

TEST_F(value_scope_test, what_nobody_joins_for_is_dropped) {
    const auto shared = std::make_shared<int>(1);
    on_a_fiber_and_on_a_thread([&] {
        std::stop_source parent;
        value_scope<std::shared_ptr<int>> all{{.name = "child"}, parent.get_token()};
        all.spawn([&](const std::stop_token& stop) {
            while (!stop.stop_requested()) this_fiber::yield();
            return shared;
        });
        parent.request_stop();
    });
    EXPECT_EQ(shared.use_count(), 1);
}

TEST_F(value_scope_test, children_may_spawn_into_their_scope) {
    on_a_fiber_and_on_a_thread([] {
        value_scope<int> all;
        const int depth = scaled(10, 6);
        std::function<int(int)> tree = [&](int left) {
            if (left != 0) {
                all.spawn(tree, left - 1);
                this_fiber::yield();
                all.spawn(tree, left - 1);
            }
            return 1;
        };
        all.spawn(tree, depth);
        EXPECT_EQ(all.join().size(), static_cast<std::size_t>((2 << depth) - 1));
    });
}

TEST_F(value_scope_test, a_child_that_cannot_be_made_has_no_value) {
    ums::run([] {
        value_scope<int> all;
        all.spawn([] { return 1; });
        EXPECT_THROW(all.spawn({.stack_bytes = std::size_t{1} << 40}, [] { return 2; }),
                     std::system_error);
        all.spawn([] { return 3; });
        EXPECT_EQ(all.join(), (std::vector<int>{1, 3}));
    });
}

}  // namespace
