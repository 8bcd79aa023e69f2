// SPDX-License-Identifier: MIT
// variants: migrate fifo p1 nosync
#include "ums/value_fiber.hpp"

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/both_worlds.hpp"
#include "support/conservation.hpp"
#include "support/scale.hpp"
#include "ums/run.hpp"
#include "ums/this_fiber.hpp"

namespace {

namespace this_fiber = ums::this_fiber;

class value_fiber_test : public conserving_test {};

int add(int a, int b) { return a + b; }

TEST_F(value_fiber_test, join_returns_the_value) {
    on_a_fiber_and_on_a_thread([] {
        auto sum = ums::spawn(add, 1, 2);
        static_assert(std::is_same_v<decltype(sum), ums::value_fiber<int>>);
        EXPECT_TRUE(sum.joinable());
        EXPECT_NE(sum.get_id(), ums::fiber_id{});
        EXPECT_EQ(sum.join(), 3);
        EXPECT_FALSE(sum.joinable());
    });
}

TEST_F(value_fiber_test, returns_what_cannot_be_copied_or_default_constructed) {
    struct particular {
        explicit particular(int n) : value{std::make_unique<int>(n)} {}
        std::unique_ptr<int> value;
    };
    on_a_fiber_and_on_a_thread([] {
        const particular got = ums::spawn([] { return particular{4}; }).join();
        EXPECT_EQ(*got.value, 4);
    });
}

TEST_F(value_fiber_test, returns_nothing) {
    on_a_fiber_and_on_a_thread([] {
        int runs = 0;
        auto f = ums::spawn([&] { ++runs; });
        static_assert(std::is_same_v<decltype(f), ums::value_fiber<void>>);
        f.join();
        EXPECT_EQ(runs, 1);
    });
}

TEST_F(value_fiber_test, returns_references) {
    on_a_fiber_and_on_a_thread([] {
        struct holder {
            int value = 7;
        };
        holder h;
        auto f = ums::spawn([&h]() -> int& { return h.value; });
        static_assert(std::is_same_v<decltype(f), ums::value_fiber<int&>>);
        EXPECT_EQ(&f.join(), &h.value);
        auto member = ums::spawn(&holder::value, &h);  // As std::invoke() returns it.
        EXPECT_EQ(std::addressof(member.join()), &h.value);
    });
    static const int shared = 0;
    EXPECT_EQ(&ums::run([]() -> const int& { return shared; }), &shared);
}

TEST_F(value_fiber_test, join_rethrows_what_the_function_threw) {
    struct odd {
        int value;
    };
    on_a_fiber_and_on_a_thread([] {
        auto f = ums::spawn([](int n) -> std::string { throw odd{n}; }, 5);
        try {
            f.join();
            ADD_FAILURE() << "nothing was thrown";
        } catch (const odd& o) {
            EXPECT_EQ(o.value, 5);
        }
        EXPECT_FALSE(f.joinable());
        auto g = ums::spawn([] { throw std::runtime_error{"said so"}; });
        try {
            g.join();
            ADD_FAILURE() << "nothing was thrown";
        } catch (const std::runtime_error& e) {
            EXPECT_STREQ(e.what(), "said so");
        }
    });
}

TEST_F(value_fiber_test, a_detached_ones_value_and_exception_are_dropped) {
    std::atomic<int> alive = 0, made = 0;
    struct counted {
        std::atomic<int>* alive;
        explicit counted(std::atomic<int>& a) : alive{&a} { ++*alive; }
        counted(counted&& other) noexcept : alive{other.alive} { ++*alive; }
        ~counted() { --*alive; }
    };
    ums::run({.processors = 2}, [&] {
        for (int i = 0; i < scaled(1000, 100); ++i) {
            ums::spawn([&, i] {
                ++made;
                if (i % 2 == 0) throw counted{alive};
                return counted{alive};
            }).detach();
        }
    });
    EXPECT_EQ(made, scaled(1000, 100));
    EXPECT_EQ(alive, 0);
}

TEST_F(value_fiber_test, a_joined_ones_value_is_destroyed) {
    const auto shared = std::make_shared<int>(1);
    ums::run([&] {
        auto f = ums::spawn([&] { return shared; });
        EXPECT_EQ(*f.join(), 1);
    });
    EXPECT_EQ(shared.use_count(), 1);
}

TEST_F(value_fiber_test, moves) {
    on_a_fiber_and_on_a_thread([] {
        std::vector<ums::value_fiber<int>> all;
        for (int i = 0; i < 100; ++i) all.push_back(ums::spawn([i] { return i; }));
        int sum = 0;
        for (auto& f : all) sum += f.join();
        EXPECT_EQ(sum, 4950);
    });
}

TEST_F(value_fiber_test, takes_options) {
    on_a_fiber_and_on_a_thread([] {
        auto f = ums::spawn({.name = "named"}, [] { return std::string{this_fiber::name()}; });
        EXPECT_EQ(f.join(), "named");
    });
}

TEST_F(value_fiber_test, joining_twice_or_itself_is_refused) {
    ums::run([] {
        auto f = ums::spawn([] { return 1; });
        EXPECT_EQ(f.join(), 1);
        EXPECT_THROW(f.join(), std::system_error);
        EXPECT_THROW(f.detach(), std::system_error);

        ums::value_fiber<int> g;
        std::atomic<bool> ready = false;
        std::atomic<int> refused = 0;
        g = ums::spawn([&] {
            while (!ready) this_fiber::yield();
            try {
                return g.join();
            } catch (const std::system_error& e) {
                refused = e.code() == std::errc::resource_deadlock_would_occur ? 1 : -1;
                return 2;
            }
        });
        ready = true;
        while (refused == 0) this_fiber::yield();
        EXPECT_EQ(refused, 1);
        EXPECT_EQ(g.join(), 2);
    });
}

TEST_F(value_fiber_test, run_returns_what_the_first_fiber_returned_or_threw) {
    EXPECT_EQ(ums::run([] { return std::make_unique<int>(8); }).operator*(), 8);
    EXPECT_THROW(ums::run([]() -> int { throw std::logic_error{"first"}; }), std::logic_error);
}

int fibonacci(int n) {
    if (n < 2) return n;
    auto a = ums::spawn(fibonacci, n - 1);
    const int b = fibonacci(n - 2);
    return a.join() + b;
}

TEST_F(value_fiber_test, computes_recursively) {
    on_a_fiber_and_on_a_thread(
        [] { EXPECT_EQ(ums::spawn(fibonacci, scaled(18, 10)).join(), scaled(2584, 55)); });
}

int throws_below(int depth) {
    if (depth == 0) throw std::runtime_error{"from the bottom"};
    return ums::spawn(throws_below, depth - 1).join() + 1;
}

TEST_F(value_fiber_test, an_exception_passes_through_many_fibers) {
    on_a_fiber_and_on_a_thread([] {
        for (int i = 0; i < 20; ++i)
            EXPECT_THROW(ums::spawn(throws_below, 50).join(), std::runtime_error);
    });
}

}  // namespace
