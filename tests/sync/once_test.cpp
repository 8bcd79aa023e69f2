// SPDX-License-Identifier: MIT
// variants: migrate fifo p1 nomembarrier nosync
#include "ums/once.hpp"

#include <atomic>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "support/both_worlds.hpp"
#include "support/conservation.hpp"
#include "support/one_processor.hpp"
#include "support/plain_thread.hpp"
#include "support/scale.hpp"

namespace {

using ums::call_once;
using ums::fiber;
using ums::once_flag;
namespace this_fiber = ums::this_fiber;

static_assert(!std::is_copy_constructible_v<once_flag> && !std::is_copy_assignable_v<once_flag>);
static_assert(std::is_nothrow_default_constructible_v<once_flag> &&
              std::is_trivially_destructible_v<once_flag>);
constinit once_flag static_once;

class once_test : public conserving_test {};

TEST_F(once_test, the_call_is_made_once_and_gets_its_arguments) {
    on_a_fiber_and_on_a_thread([] {
        struct adder {
            int sum = 0;
            void add(int n, std::unique_ptr<int> m) { sum += n + *m; }
        } a;
        once_flag flag;
        for (int i = 0; i < 3; ++i) call_once(flag, &adder::add, &a, 40, std::make_unique<int>(2));
        EXPECT_EQ(a.sum, 42);
    });
}

TEST_F(once_test, one_makes_the_call_and_the_others_wait_for_it) {
    ums::run({.processors = 2}, [] {
        for (int round = 0; round < scaled(60, 20); ++round) {
            once_flag flag;
            int made = 0;
            on_threads_and_fibers(4, 20, [&](int) {
                call_once(flag, [&] {
                    this_fiber::yield();
                    ++made;
                });
                EXPECT_EQ(made, 1);
            });
        }
    });
    int made = 0;
    for (int i = 0; i < 2; ++i) call_once(static_once, [&] { ++made; });
    EXPECT_EQ(made, 1);
}

TEST_F(once_test, a_call_that_throws_leaves_it_to_the_next) {
    on_a_fiber_and_on_a_thread([] {
        once_flag flag;
        EXPECT_THROW(call_once(flag, [] { throw std::runtime_error{"first"}; }),
                     std::runtime_error);
        int made = 0;
        call_once(flag, [&] { ++made; });
        call_once(flag, [&] { ++made; });
        EXPECT_EQ(made, 1);
    });
}

TEST_F(once_test, those_who_wait_try_in_turn_until_a_call_returns) {
    ums::run({.processors = 2}, [] {
        for (int round = 0; round < scaled(60, 20); ++round) {
            constexpr int throwing = 7;
            once_flag flag;
            int calls = 0;
            std::atomic<int> caught = 0;
            on_threads_and_fibers(4, 20, [&](int) {
                try {
                    call_once(flag, [&] {
                        this_fiber::yield();
                        if (++calls <= throwing) throw calls;
                    });
                    EXPECT_EQ(calls, throwing + 1);
                } catch (int) {
                    ++caught;
                }
            });
            EXPECT_EQ(caught, throwing);
            EXPECT_EQ(calls, throwing + 1);
        }
    });
}

TEST_F(once_test, a_turn_goes_to_who_waits_longest) {
    ums::run(one_processor, [] {
        once_flag flag;
        std::vector<int> order;
        std::vector<fiber> all;
        std::atomic<bool> go = false;
        for (int i = 0; i < 10; ++i) {
            all.emplace_back([&, i] {
                try {
                    call_once(flag, [&] {
                        yield_until([&] { return go.load(); });
                        order.push_back(i);
                        throw i;
                    });
                } catch (int) {
                }
            });
            this_fiber::yield();
        }
        go = true;
        for (fiber& f : all) f.join();
        for (int i = 0; i < 10; ++i) EXPECT_EQ(order.at(static_cast<std::size_t>(i)), i);
    });
}

// The fiber that finds it done destroys it, however far the fiber that made the call is.
TEST_F(once_test, may_be_destroyed_by_who_finds_it_done) {
    on_a_fiber_and_on_a_thread([] {
        for (int i = 0; i < scaled(400, 100); ++i) {
            auto* flag = new once_flag;
            std::atomic<bool> is_running = false;
            auto last = [flag, &is_running] {
                yield_until([&] { return is_running.load(); });
                call_once(*flag, [] { FAIL(); });
                delete flag;
            };
            auto make = [&] {
                call_once(*flag, [&] {
                    is_running = true;
                    if (i % 2 == 0) this_fiber::yield();
                });
            };
            if (i % 16 == 15) {
                plain_thread waiter{last};
                make();
                waiter.join();
            } else {
                fiber waiter{last};
                make();
                waiter.join();
            }
        }
    });
}

}  // namespace
