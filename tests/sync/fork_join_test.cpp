// SPDX-License-Identifier: MIT
// variants: migrate fifo p1 nosync
#include "ums/fork_join.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <tuple>
#include <type_traits>

#include <gtest/gtest.h>

#include "support/both_worlds.hpp"
#include "support/conservation.hpp"
#include "support/one_processor.hpp"
#include "support/scale.hpp"
#include "ums/cluster.hpp"
#include "ums/deadline.hpp"
#include "ums/fiber_local.hpp"
#include "ums/latch.hpp"
#include "ums/mutex.hpp"
#include "ums/parallel_for.hpp"
#include "ums/run.hpp"
#include "ums/stats.hpp"
#include "ums/this_fiber.hpp"

namespace {

using ums::fork_join;
namespace this_fiber = ums::this_fiber;

class fork_join_test : public conserving_test {};

int seven() { return 7; }

TEST_F(fork_join_test, returns_what_the_functions_returned_in_their_order) {
    on_a_fiber_and_on_a_thread([] {
        const auto all = fork_join(
            seven, [] { return std::string{"text"}; }, [] { return 2.5; });
        static_assert(std::is_same_v<decltype(all), const std::tuple<int, std::string, double>>);
        EXPECT_EQ(all, (std::tuple{7, std::string{"text"}, 2.5}));
        EXPECT_EQ(fork_join(seven), std::tuple{7});
    });
}

TEST_F(fork_join_test, a_function_that_returns_nothing_has_no_value) {
    on_a_fiber_and_on_a_thread([] {
        std::atomic<int> calls = 0;
        const auto count = [&calls] { ++calls; };
        static_assert(std::is_void_v<decltype(fork_join(count, count))>);
        fork_join(count, count, count);
        const auto one = fork_join(count, seven, count);
        static_assert(std::is_same_v<decltype(one), const std::tuple<int>>);
        EXPECT_EQ(std::get<0>(one), 7);
        EXPECT_EQ(calls, 5);
    });
}

TEST_F(fork_join_test, returns_references_and_what_can_only_be_moved) {
    on_a_fiber_and_on_a_thread([] {
        int here = 1;
        auto [to, made] =
            fork_join([&here]() -> int& { return here; }, [] { return std::make_unique<int>(3); });
        static_assert(std::is_same_v<decltype(to), int&>);
        EXPECT_EQ(&to, &here);
        EXPECT_EQ(*made, 3);
    });
}

TEST_F(fork_join_test, calls_the_functions_as_they_were_passed_and_copies_none) {
    struct function {
        explicit function(int n) : value{std::make_unique<int>(n)} {}
        function(const function&) = delete;
        std::string operator()() & { return "lvalue"; }
        std::string operator()() const& { return "const"; }
        std::string operator()() && { return "rvalue"; }
        std::unique_ptr<int> value;
    };
    on_a_fiber_and_on_a_thread([] {
        function f{1};
        const function g{2};
        EXPECT_EQ(fork_join(f, g, function{3}, f),
                  (std::tuple<std::string, std::string, std::string, std::string>{
                      "lvalue", "const", "rvalue", "lvalue"}));
    });
}

TEST_F(fork_join_test, the_caller_runs_the_last_and_the_others_have_fibers) {
    ums::run({.processors = 2}, [] {
        const auto own = this_fiber::get_id();
        const auto spawned = ums::stats().spawned;
        const auto [a, b, c] =
            fork_join(this_fiber::get_id, this_fiber::get_id, this_fiber::get_id);
        EXPECT_EQ(c, own);
        EXPECT_NE(a, own);
        EXPECT_NE(b, own);
        EXPECT_NE(a, b);
        EXPECT_EQ(ums::stats().spawned, spawned + 2);
    });
}

TEST_F(fork_join_test, the_functions_run_side_by_side) {
    on_a_fiber_and_on_a_thread([] {
        ums::latch all_are_there{3};
        const auto meet = [&] { all_are_there.arrive_and_wait(); };
        fork_join(meet, meet, meet);
    });
}

TEST_F(fork_join_test, the_first_functions_exception_comes_when_all_have_ended) {
    on_a_fiber_and_on_a_thread([] {
        for (int thrower = 0; thrower < 3; ++thrower) {
            std::atomic<int> ended = 0;
            const auto work = [&](int n) {
                return [&ended, thrower, n] {
                    for (int i = n; i < 3; ++i) this_fiber::yield();
                    ++ended;
                    if (n >= thrower) throw std::runtime_error{std::to_string(n)};
                    return std::string(100, 'x');
                };
            };
            try {
                fork_join(work(0), work(1), work(2));
                ADD_FAILURE();
            } catch (const std::runtime_error& e) {
                EXPECT_EQ(e.what(), std::to_string(thrower));
            }
            EXPECT_EQ(ended, 3);
        }
    });
}

TEST_F(fork_join_test, all_that_a_function_leaves_to_its_fibers_end_is_done) {
    static std::atomic<int> gone;
    struct leaving {
        ~leaving() {
            this_fiber::yield();
            ++gone;
        }
    };
    gone = 0;
    ums::run({.processors = 2}, [] {
        ums::fiber_local<leaving> local;
        fork_join([&] { (void)*local; }, [] {});
        EXPECT_EQ(gone, 1);
    });
}

// The functions of fork_join(), and the turns of a loop.
template <class F>
void fork_each_way(const F& f) {
    fork_join(f, [] {});
    ums::parallel_for(0, 2, 1, [&](int i) { i == 0 ? f() : void(); });
}

TEST_F(fork_join_test, the_functions_fibers_have_what_the_caller_asks_of_the_policy) {
    ums::run({.processors = 2}, [] {
        const ums::deadline due = ums::deadline_after(std::chrono::hours{1});
        ums::fiber caller{{.tag = 7, .priority = -2, .deadline = due, .weight = 300, .group = 5},
                          [due] {
                              const auto own = this_fiber::ref();
                              fork_each_way([due, own] {
                                  const auto f = this_fiber::ref();
                                  EXPECT_NE(f, own);
                                  EXPECT_EQ(f.tag(), 7U);
                                  EXPECT_EQ(f.priority(), -2);
                                  EXPECT_EQ(f.deadline(), due);
                                  EXPECT_EQ(f.weight(), 300U);
                                  EXPECT_EQ(f.group(), 5U);
                              });
                          }};
        caller.join();
    });
}

// Runs a fiber in a cluster with this policy.
template <class F>
void run_under(ums::policy_kind policy, const ums::fiber_options& caller, F f) {
    ums::run(one_processor, [&] {
        ums::cluster own{{.processors = 1, .policy = policy}};
        ums::fiber_options options = caller;
        options.cluster = &own;
        ums::fiber{options, f}.join();
    });
}

// It would wait for less urgent ones, and through its join() so would the caller.
TEST_F(fork_join_test, a_functions_fiber_is_as_urgent_as_the_caller) {
    run_under(ums::policy_kind::priority, {.priority = 3}, [] {
        std::atomic<int> turns = 0;
        std::atomic<bool> is_over = false;
        ums::fiber rival{{.priority = 1}, [&] {
                             while (!is_over) {
                                 ++turns;
                                 this_fiber::yield();
                             }
                         }};
        fork_each_way([] {
            for (int i = 0; i < 10; ++i) this_fiber::yield();
        });
        // One at each end, where the next fiber is chosen before the joiner is ready; and each 65th
        // switch is for those that were passed over. A less urgent one would have waited for that
        // ten times.
        EXPECT_LE(turns, 4);
        is_over = true;
        rival.join();
    });
}

TEST_F(fork_join_test, a_functions_fiber_is_as_urgent_as_those_that_wait_for_the_callers_mutex) {
    run_under(ums::policy_kind::priority, {}, [] {
        ums::mutex held;
        held.lock();
        ums::fiber waits{{.priority = 2}, [&] { const std::lock_guard guard{held}; }};
        while (this_fiber::ref().effective_priority() != 2) this_fiber::yield();
        fork_each_way([] { EXPECT_EQ(this_fiber::ref().priority(), 2); });
        EXPECT_EQ(this_fiber::ref().priority(), 0);
        held.unlock();
        waits.join();
    });
}

// One without a deadline would overtake it: that is due a second after it became ready.
TEST_F(fork_join_test, a_functions_fiber_is_due_when_the_caller_is) {
    using std::chrono::hours;
    const auto due = ums::deadline_after(hours{2});
    run_under(ums::policy_kind::earliest_deadline_first, {.deadline = due}, [] {
        fork_each_way([] {
            std::atomic<bool> has_run = false;
            ums::fiber rival{{.deadline = ums::deadline_after(hours{1})}, [&] { has_run = true; }};
            this_fiber::yield();
            EXPECT_TRUE(has_run);
            rival.join();
        });
    });
}

TEST_F(fork_join_test, without_a_runtime_it_is_refused) {
    int calls = 0;
    const auto count = [&] { ++calls; };
    EXPECT_THROW(fork_join(count, count), std::system_error);
    EXPECT_EQ(calls, 0);
    fork_join(count);  // This one needs no fiber.
    EXPECT_EQ(calls, 1);
}

long fibonacci(int n) {
    if (n < 2) return n;
    const auto [a, b] =
        fork_join([n] { return fibonacci(n - 1); }, [n] { return fibonacci(n - 2); });
    return a + b;
}

TEST_F(fork_join_test, computes_recursively) {
    on_a_fiber_and_on_a_thread([] { EXPECT_EQ(fibonacci(scaled(20, 10)), scaled(6765, 55)); });
}

void throw_below(int depth) {
    if (depth == 0) throw std::runtime_error{"from the bottom"};
    fork_join([&] { throw_below(depth - 1); }, [] { this_fiber::yield(); });
}

TEST_F(fork_join_test, an_exception_comes_up_from_the_bottom) {
    on_a_fiber_and_on_a_thread([] { EXPECT_THROW(throw_below(30), std::runtime_error); });
}

TEST_F(fork_join_test, it_may_be_called_while_an_exception_is_on_its_way) {
    on_a_fiber_and_on_a_thread([] {
        std::atomic<int> calls = 0;
        struct at_the_end {
            std::atomic<int>& calls;
            ~at_the_end() {
                const auto work = [this] {
                    this_fiber::yield();
                    ++calls;
                };
                fork_join(work, work);
            }
        };
        try {
            const at_the_end last{calls};
            throw std::logic_error{"on its way"};
        } catch (const std::logic_error& e) {
            EXPECT_STREQ(e.what(), "on its way");
        }
        EXPECT_EQ(calls, 2);
    });
}

}  // namespace
