// SPDX-License-Identifier: MIT
// variants: migrate fifo p1 nomembarrier
// (Not nosync: what libstdc++'s stop callbacks do on one kernel thread is ordered by that thread
// alone.)
#include "ums/scope.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "support/both_worlds.hpp"
#include "support/conservation.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"
#include "support/variant.hpp"
#include "ums/fiber_local.hpp"
#include "ums/future.hpp"
#include "ums/run.hpp"
#include "ums/this_fiber.hpp"

namespace {

using namespace std::chrono_literals;
using ums::scope;
namespace this_fiber = ums::this_fiber;

static_assert(std::is_nothrow_destructible_v<scope> && !std::is_move_constructible_v<scope>);
static_assert(!std::is_copy_constructible_v<scope>);

class scope_test : public conserving_test {};

// Runs until it is asked to stop.
void until_stopped(const std::stop_token& stop) {
    while (!stop.stop_requested()) this_fiber::yield();
}

TEST_F(scope_test, children_end_before_join_returns) {
    on_a_fiber_and_on_a_thread([] {
        std::atomic<int> ended = 0;
        scope all;
        for (int i = 0; i < 100; ++i)
            all.spawn([&ended] {
                this_fiber::yield();
                ++ended;
            });
        all.join();
        EXPECT_EQ(ended, 100);
        EXPECT_FALSE(all.get_stop_token().stop_requested());
        all.join();
        all.spawn([&ended] { ++ended; });
        all.join();
        EXPECT_EQ(ended, 101);
    });
}

TEST_F(scope_test, arguments_options_and_tokens_reach_the_child) {
    on_a_fiber_and_on_a_thread([] {
        scope all;
        int sum = 0;
        std::string name;
        all.spawn([](int& to, std::unique_ptr<int> n) { to += *n; }, std::ref(sum),
                  std::make_unique<int>(3));
        all.spawn({.name = "child"}, [&name] { name = this_fiber::name(); });
        std::stop_token seen;
        all.spawn([&seen](std::stop_token stop, int) { seen = std::move(stop); }, 1);
        all.join();
        EXPECT_EQ(sum, 3);
        EXPECT_EQ(name, "child");
        EXPECT_EQ(seen, all.get_stop_token());
    });
}

TEST_F(scope_test, options_of_the_scope_are_those_of_children_without_any) {
    // Without a detector: a child that meets a page fault is not left behind.
    ums::run({.processors = 1, .block = ums::block_detection::off}, [] {
        // In one of the variants each fiber that becomes ready goes elsewhere.
        const bool runs_at_once = by_variant(1, 0) != 0;
        const std::string whole = "of the scope";
        std::stop_source parent;
        scope all{{.name = whole, .launch = ums::launch::dispatch}, parent.get_token()};
        std::string names;
        int calls = 0;
        all.spawn([&] {
            names += this_fiber::name();
            ++calls;
        });
        if (runs_at_once) {
            EXPECT_EQ(calls, 1);
        }
        all.spawn({.name = "own"}, [&] {
            names += ", " + std::string{this_fiber::name()};
            ++calls;
        });
        if (runs_at_once) {
            EXPECT_EQ(calls, 1);
        }
        all.join();
        EXPECT_EQ(names, "of the scope, own");
        scope at_once{{.launch = ums::launch::dispatch}};
        at_once.spawn([&] { ++calls; });
        if (runs_at_once) {
            EXPECT_EQ(calls, 3);
        }
        parent.request_stop();
        EXPECT_TRUE(all.get_stop_token().stop_requested());
        EXPECT_FALSE(at_once.get_stop_token().stop_requested());
    });
}

TEST_F(scope_test, a_stop_requested_before_anybody_asks_is_not_lost) {
    scope all;
    EXPECT_TRUE(all.request_stop());
    EXPECT_FALSE(all.request_stop());
    EXPECT_TRUE(all.get_stop_token().stop_requested());
    EXPECT_EQ(all.get_stop_token(), all.get_stop_source().get_token());
    EXPECT_FALSE(all.request_stop());
    scope other;
    const std::stop_token token = other.get_stop_token();
    EXPECT_FALSE(token.stop_requested());
    EXPECT_TRUE(other.request_stop());
    EXPECT_TRUE(token.stop_requested());
}

TEST_F(scope_test, another_than_its_maker_may_spawn_join_and_destroy) {
    on_a_fiber_and_on_a_thread([] {
        for (int i = 0; i < scaled(1000, 100); ++i) {
            auto all = std::make_unique<scope>();
            std::atomic<int> ended = 0;
            const auto child = [&ended, i] {
                if (i % 3 == 0) this_fiber::yield();
                ++ended;
            };
            all->spawn(child);
            all->spawn(child);
            ums::fiber{[&] {
                all->spawn(child);
                if (i % 2 == 0) this_fiber::yield();
                if (i % 4 != 0) all->join();
                all.reset();
                EXPECT_EQ(ended, 3);
            }}.join();
        }
    });
}

TEST_F(scope_test, joins_race_with_spawns_of_others) {
    ums::run({.processors = 2}, [] {
        for (int i = 0; i < scaled(500, 50); ++i) {
            std::atomic<int> begun = 0, ended = 0;
            {
                scope all;
                const auto child = [&] { ++ended; };
                const auto spawns = [&] {
                    for (int n = 0; n < 8; ++n) {
                        ++begun;
                        all.spawn(child);
                        if (n % 4 == i % 4) this_fiber::yield();
                    }
                };
                ums::fiber other{[&] {
                    spawns();
                    all.join();
                }};
                spawns();
                all.join();
                EXPECT_GE(ended, 8);
                other.join();
            }
            EXPECT_EQ(begun, ended);
        }
    });
}

TEST_F(scope_test, the_destructor_asks_the_children_to_stop_and_waits) {
    on_a_fiber_and_on_a_thread([] {
        std::atomic<int> ended = 0;
        std::stop_token token;
        {
            scope all;
            token = all.get_stop_token();
            for (int i = 0; i < 10; ++i)
                all.spawn([&ended](const std::stop_token& stop) {
                    until_stopped(stop);
                    ++ended;
                });
        }
        EXPECT_EQ(ended, 10);
        EXPECT_TRUE(token.stop_requested());
        { token = scope{}.get_stop_token(); }
        EXPECT_FALSE(token.stop_requested());
    });
}

TEST_F(scope_test, the_first_exception_stops_the_others_and_is_rethrown_once) {
    on_a_fiber_and_on_a_thread([] {
        scope all;
        std::atomic<int> waiting = 0, stopped = 0;
        for (int i = 0; i < 10; ++i)
            all.spawn([&](const std::stop_token& stop) {
                ++waiting;
                until_stopped(stop);
                ++stopped;
                throw std::logic_error{"a consequence"};
            });
        all.spawn([&waiting] {
            while (waiting != 10) this_fiber::yield();  // So that the stop ends them all.
            throw std::runtime_error{"the cause"};
        });
        try {
            all.join();
            ADD_FAILURE();
        } catch (const std::runtime_error& e) {
            EXPECT_STREQ(e.what(), "the cause");
        }
        EXPECT_EQ(stopped, 10);
        EXPECT_NO_THROW(all.join());
        EXPECT_TRUE(all.get_stop_token().stop_requested());
        bool told = false;
        all.spawn([&told](const std::stop_token& stop) { told = stop.stop_requested(); });
        all.join();
        EXPECT_TRUE(told);
    });
}

TEST_F(scope_test, an_exception_that_nobody_joins_for_is_dropped) {
    on_a_fiber_and_on_a_thread([] {
        scope all;
        all.spawn([] { throw std::runtime_error{"unseen"}; });
    });
}

TEST_F(scope_test, an_exception_of_the_owner_ends_the_children_too) {
    on_a_fiber_and_on_a_thread([] {
        std::atomic<int> ended = 0;
        try {
            scope all;
            all.spawn([&ended](const std::stop_token& stop) {
                until_stopped(stop);
                ++ended;
            });
            throw std::runtime_error{"the owner's"};
        } catch (const std::runtime_error& e) {
            EXPECT_STREQ(e.what(), "the owner's");
        }
        EXPECT_EQ(ended, 1);
    });
}

TEST_F(scope_test, a_stop_of_the_parent_reaches_scopes_inside_children) {
    on_a_fiber_and_on_a_thread([] {
        std::atomic<int> started = 0, ended = 0;
        scope outer;
        for (int i = 0; i < 4; ++i)
            outer.spawn([&](const std::stop_token& stop) {
                scope inner{stop};
                for (int n = 0; n < 4; ++n)
                    inner.spawn([&](const std::stop_token& inner_stop) {
                        ++started;
                        until_stopped(inner_stop);
                        ++ended;
                    });
                inner.join();
            });
        while (started != 16) this_fiber::yield();
        EXPECT_TRUE(outer.request_stop());
        EXPECT_FALSE(outer.request_stop());
        outer.join();
        EXPECT_EQ(ended, 16);

        scope late{outer.get_stop_token()};
        EXPECT_TRUE(late.get_stop_token().stop_requested());
        std::stop_source parent;
        {
            scope passing{parent.get_token()};
            passing.request_stop();
        }
        EXPECT_FALSE(parent.stop_requested());
        parent.request_stop();
    });
}

TEST_F(scope_test, an_exception_deep_inside_comes_out_at_the_top) {
    ums::run({.processors = 2}, [] {
        scope outer;
        std::atomic<int> others = 0;
        outer.spawn([](const std::stop_token& stop) {
            scope middle{stop};
            middle.spawn([](const std::stop_token& inner_stop) {
                scope inner{inner_stop};
                inner.spawn([] { throw std::runtime_error{"deep"}; });
                inner.join();
            });
            middle.join();
        });
        outer.spawn([&others](const std::stop_token& stop) {
            until_stopped(stop);
            ++others;
        });
        EXPECT_THROW(outer.join(), std::runtime_error);
        EXPECT_EQ(others, 1);
    });
}

TEST_F(scope_test, children_may_spawn_into_their_scope) {
    on_a_fiber_and_on_a_thread([] {
        std::atomic<int> nodes = 0;
        scope all;
        std::function<void(int)> tree = [&](int depth) {
            ++nodes;
            if (depth == 0) return;
            all.spawn(tree, depth - 1);
            this_fiber::yield();
            all.spawn(tree, depth - 1);
        };
        all.spawn(tree, scaled(12, 7));
        all.join();
        EXPECT_EQ(nodes, (2 << scaled(12, 7)) - 1);
    });
}

TEST_F(scope_test, all_that_a_child_does_at_its_exit_is_done) {
    static std::atomic<int> gone;
    struct leaving {
        ~leaving() {
            this_fiber::yield();
            ++gone;
        }
    };
    gone = 0;
    on_a_fiber_and_on_a_thread([] {
        ums::fiber_local<leaving> local;
        ums::promise<int> p;
        ums::future<int> f = p.get_future();
        scope all;
        all.spawn([&] {
            (void)*local;
            p.set_value_at_fiber_exit(1);
        });
        all.join();
        EXPECT_EQ(f.wait_for(0s), std::future_status::ready);
    });
    EXPECT_EQ(gone, 2);
}

TEST_F(scope_test, a_child_that_cannot_be_made_is_not_waited_for) {
    {
        scope all;
        EXPECT_THROW(all.spawn([] {}), std::system_error);  // No runtime.
        all.join();
    }
    ums::run([] {
        scope all;
        EXPECT_THROW(all.spawn({.stack_bytes = std::size_t{1} << 40}, [] {}), std::system_error);
        struct throws {
            throws() = default;
            throws(const throws&) { throw std::runtime_error{"copy"}; }
            void operator()() const {}
        };
        const throws f;
        EXPECT_THROW(all.spawn(f), std::runtime_error);
        all.join();
    });
}

TEST_F(scope_test, a_dispatched_child_may_end_before_spawn_returns) {
    ums::run({.processors = 2}, [] {
        scope all;
        std::atomic<int> calls = 0;  // Meanwhile another processor may take the creator.
        for (int i = 0; i < 100; ++i)
            all.spawn({.launch = ums::launch::dispatch}, [&] { ++calls; });
        all.join();
        EXPECT_EQ(calls, 100);
    });
}

TEST_F(scope_test, many_may_join_and_a_scope_may_go_at_once) {
    ums::run({.processors = 2}, [] {
        for (int i = 0; i < scaled(2000, 200); ++i) {
            auto all = std::make_unique<scope>();
            std::atomic<int> ended = 0;
            for (int n = 0; n < 3; ++n)
                all->spawn([&ended, n] {
                    if (n == 1) this_fiber::yield();
                    ++ended;
                });
            if (i % 2 == 0) {
                ums::fiber other{[&] {
                    all->join();
                    EXPECT_EQ(ended, 3);
                }};
                all->join();
                other.join();
            } else {
                all->join();
            }
            EXPECT_EQ(ended, 3);
            all.reset();
        }
    });
}

TEST_F(scope_test, random_trees_lose_no_child_and_no_failure) {
    const auto seed = test_seed();
    ums::run({.processors = 2}, [seed] {
        std::atomic<int> begun = 0, ended = 0, throws = 0, caught = 0;
        struct counter {
            std::atomic<int>& at_end;
            ~counter() { ++at_end; }
        };
        std::function<void(const std::stop_token&, unsigned, int)> node =
            [&](const std::stop_token& stop, unsigned own_seed, int depth) {
                ++begun;
                const counter last{ended};
                std::minstd_rand random{own_seed};
                if (random() % 16 == 0) {
                    ++throws;
                    throw std::runtime_error{"random"};
                }
                if (depth == 0) return;
                scope children{stop};
                for (auto n = random() % 4; n > 0; --n) {
                    children.spawn(node, static_cast<unsigned>(random()), depth - 1);
                    if (random() % 2 == 0) this_fiber::yield();
                }
                if (random() % 8 == 0) return;
                if (random() % 8 == 0) children.request_stop();
                children.join();
            };
        for (int i = 0; i < scaled(200, 20); ++i) {
            scope top;
            const int before = throws;
            top.spawn(node, static_cast<unsigned>(seed + static_cast<unsigned>(i)), 6);
            try {
                top.join();
            } catch (const std::runtime_error&) {
                ++caught;
                EXPECT_GT(throws, before);
                EXPECT_TRUE(top.get_stop_token().stop_requested());
            }
            EXPECT_EQ(begun, ended);
        }
        EXPECT_LE(caught, throws);
    });
}

TEST_F(scope_test, stops_race_with_ends) {
    ums::run({.processors = 2}, [] {
        for (int i = 0; i < scaled(1000, 100); ++i) {
            std::stop_source parent;
            std::atomic<int> ended = 0;
            ums::fiber stopper{[&] {
                if (i % 3 == 0) this_fiber::yield();
                parent.request_stop();
            }};
            {
                scope all{parent.get_token()};
                for (int n = 0; n < 4; ++n)
                    all.spawn([&ended, n](const std::stop_token& stop) {
                        if (n % 2 == 0) until_stopped(stop);
                        ++ended;
                    });
                if (i % 2 == 0) all.join();
            }
            EXPECT_EQ(ended, 4);
            stopper.join();
        }
    });
}

}  // namespace
