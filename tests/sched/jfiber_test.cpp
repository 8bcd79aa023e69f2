// SPDX-License-Identifier: MIT
// variants: migrate fifo p1 nosync
#include "ums/jfiber.hpp"

#include <atomic>
#include <memory>
#include <optional>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/both_worlds.hpp"
#include "support/conservation.hpp"
#include "support/error_of.hpp"
#include "support/scale.hpp"
#include "ums/run.hpp"
#include "ums/this_fiber.hpp"

namespace {

using ums::jfiber;
namespace this_fiber = ums::this_fiber;

class jfiber_test : public conserving_test {};

void until_stopped(std::stop_token stop, std::atomic<int>& stops) {
    while (!stop.stop_requested()) this_fiber::yield();
    ++stops;
}

TEST_F(jfiber_test, a_default_one_is_not_joinable_and_has_no_stop_state) {
    jfiber none;
    EXPECT_FALSE(none.joinable());
    EXPECT_EQ(none.get_id(), jfiber::id{});
    EXPECT_FALSE(none.get_stop_source().stop_possible());
    EXPECT_FALSE(none.get_stop_token().stop_possible());
    EXPECT_FALSE(none.request_stop());
}

TEST_F(jfiber_test, its_destructor_requests_a_stop_and_joins) {
    on_a_fiber_and_on_a_thread([] {
        std::atomic<int> stops = 0;
        { jfiber f{until_stopped, std::ref(stops)}; }
        EXPECT_EQ(stops, 1);
    });
}

TEST_F(jfiber_test, a_function_without_a_stop_token_is_joined_all_the_same) {
    on_a_fiber_and_on_a_thread([] {
        int written = 0;
        {
            jfiber f{[&](int n) {
                         for (int i = 0; i < 100; ++i) this_fiber::yield();
                         written = n;
                     },
                     7};
        }
        EXPECT_EQ(written, 7);
    });
}

TEST_F(jfiber_test, prefers_the_call_with_a_stop_token) {
    struct both {
        int* which;
        void operator()(int) const { *which = 1; }
        void operator()(std::stop_token, int) const { *which = 2; }
    };
    on_a_fiber_and_on_a_thread([] {
        int which = 0;
        jfiber{both{&which}, 0}.join();
        EXPECT_EQ(which, 2);
    });
}

TEST_F(jfiber_test, request_stop_is_seen_through_every_handle_of_the_state) {
    on_a_fiber_and_on_a_thread([] {
        std::atomic<int> stops = 0;
        jfiber f{until_stopped, std::ref(stops)};
        const std::stop_token token = f.get_stop_token();
        std::stop_source source = f.get_stop_source();
        EXPECT_TRUE(token.stop_possible());
        EXPECT_FALSE(token.stop_requested());
        EXPECT_TRUE(source.request_stop());
        EXPECT_FALSE(f.request_stop());  // This is the second request.
        EXPECT_TRUE(token.stop_requested());
        f.join();
        EXPECT_EQ(stops, 1);
    });
}

TEST_F(jfiber_test, its_stop_ends_a_park) {
    on_a_fiber_and_on_a_thread([] {
        std::optional<ums::wake_reason> why;
        {
            jfiber f{[&](const std::stop_token& stop) { why = this_fiber::park(stop); }};
        }
        EXPECT_EQ(why, ums::wake_reason::stopped);
    });
}

TEST_F(jfiber_test, move_assignment_stops_and_joins_what_it_had) {
    on_a_fiber_and_on_a_thread([] {
        std::atomic<int> first = 0, second = 0;
        jfiber f{until_stopped, std::ref(first)};
        f = jfiber{until_stopped, std::ref(second)};
        EXPECT_EQ(first, 1);
        EXPECT_EQ(second, 0);
        EXPECT_FALSE(f.get_stop_token().stop_requested());
        jfiber& same = f;
        f = std::move(same);
        EXPECT_TRUE(f.joinable());
        EXPECT_EQ(second, 0);
        f = jfiber{};
        EXPECT_EQ(second, 1);
    });
}

TEST_F(jfiber_test, moves_and_swaps_with_its_stop_state) {
    static_assert(!std::is_copy_constructible_v<jfiber>);
    on_a_fiber_and_on_a_thread([] {
        std::atomic<int> first = 0, second = 0;
        jfiber a{until_stopped, std::ref(first)}, b{until_stopped, std::ref(second)};
        const auto id_a = a.get_id(), id_b = b.get_id();
        swap(a, b);
        EXPECT_EQ(a.get_id(), id_b);
        EXPECT_EQ(b.get_id(), id_a);
        jfiber c{std::move(a)};
        EXPECT_FALSE(a.joinable());
        c.request_stop();
        c.join();
        EXPECT_EQ(first, 0);
        EXPECT_EQ(second, 1);
        b.request_stop();
        b.join();
        EXPECT_EQ(first, 1);
    });
}

TEST_F(jfiber_test, a_detached_one_is_neither_stopped_nor_joined) {
    std::atomic<bool> go = false;
    std::atomic<int> stopped = 0, ended = 0;
    ums::run({.processors = 2}, [&] {
        {
            jfiber f{[&](const std::stop_token& stop) {
                while (!go) this_fiber::yield();
                stopped += stop.stop_requested();
                ++ended;
            }};
            f.detach();
        }
        EXPECT_EQ(ended, 0);
        go = true;
    });
    EXPECT_EQ(ended, 1);
    EXPECT_EQ(stopped, 0);
}

TEST_F(jfiber_test, takes_options_and_move_only_arguments) {
    on_a_fiber_and_on_a_thread([] {
        std::string name;
        int got = 0;
        jfiber{{.name = "worker", .stack_bytes = 128 * 1024},
               [&](const std::stop_token&, std::unique_ptr<int> n) {
                   name = this_fiber::name();
                   got = *n;
               },
               std::make_unique<int>(3)}
            .join();
        EXPECT_EQ(name, "worker");
        EXPECT_EQ(got, 3);
    });
}

TEST_F(jfiber_test, joining_itself_or_nothing_is_refused) {
    ums::run([] {
        jfiber none;
        EXPECT_THROW(none.join(), std::system_error);
        EXPECT_THROW(none.detach(), std::system_error);
        std::atomic<bool> ready = false;
        std::errc refused{};
        jfiber f;
        f = jfiber{[&] {
            while (!ready) this_fiber::yield();
            refused = error_of([&] { f.join(); });
        }};
        ready = true;
        f.join();
        EXPECT_EQ(refused, std::errc::resource_deadlock_would_occur);
    });
}

// Requests race with parks, deadlines and ends.
TEST_F(jfiber_test, stop_and_end_race) {
    ums::runtime started{{.processors = 2}};
    std::atomic<int> ended = 0;
    constexpr int many = scaled(5000, 300);
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < many; ++i) {
                jfiber f{[&, i](const std::stop_token& stop) {
                    if (i % 2 == 0)
                        while (this_fiber::park(stop) != ums::wake_reason::stopped) {
                        }
                    ++ended;
                }};
                for (int y = 0; y < i % 7; ++y) this_fiber::yield();
            }
        });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(ended, 2 * many);
}

TEST_F(jfiber_test, its_native_handle_is_that_of_a_fiber) {
    static_assert(std::is_same_v<jfiber::native_handle_type, ums::fiber::native_handle_type>);
    ums::runtime started;
    const jfiber f{[] {}};
    EXPECT_EQ(f.native_handle(), f.ref());
}

TEST_F(jfiber_test, hardware_concurrency_is_that_of_fiber) {
    EXPECT_EQ(jfiber::hardware_concurrency(), ums::fiber::hardware_concurrency());
}

}  // namespace
