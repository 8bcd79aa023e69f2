// SPDX-License-Identifier: MIT

// Trees of fibers are walked depth first, dispatched or not; the fibers beside a walk keep their
// turns, and a walk without end starves nobody.

#include <algorithm>
#include <atomic>
#include <vector>

#include <gtest/gtest.h>

#include "support/conservation.hpp"
#include "support/one_processor.hpp"
#include "ums/async.hpp"
#include "ums/fiber.hpp"
#include "ums/run.hpp"
#include "ums/scope.hpp"
#include "ums/semaphore.hpp"
#include "ums/this_fiber.hpp"
#include "ums/value_fiber.hpp"
#include "ums/wait_group.hpp"

namespace {

using ums::launch;
namespace this_fiber = ums::this_fiber;

class fork_join_test : public conserving_test {};

// How many fibers of a tree live at once, those included that have not begun.
class census {
public:
    void born() noexcept {
        const int now = ++living_;
        int seen = most_;
        while (now > seen && !most_.compare_exchange_weak(seen, now)) {
        }
    }
    void gone() noexcept { --living_; }
    [[nodiscard]] int most() const noexcept { return most_; }

private:
    std::atomic<int> living_{0}, most_{0};
};

long fib(int n, census& all, launch how) {
    if (n < 2) return n;
    long x = 0;
    all.born();
    ums::fiber left{{.launch = how}, [&, n] { x = fib(n - 1, all, how); }};
    const long y = fib(n - 2, all, how);
    left.join();
    all.gone();
    return x + y;
}

long fib_of_values(int n, census& all) {
    if (n < 2) return n;
    all.born();
    auto left = ums::spawn([&, n] { return fib_of_values(n - 1, all); });
    const long y = fib_of_values(n - 2, all);
    const long x = left.join();
    all.gone();
    return x + y;
}

constexpr int fan = 10;

// The leaves below `levels` levels, `fan` children each.
template <class Fork>
long leaves(int levels, census& all, const Fork& fork) {
    if (levels == 0) return 1;
    long of[fan] = {};
    fork([&](int i) {
        of[i] = leaves(levels - 1, all, fork);
        all.gone();
    });
    long sum = 0;
    for (const long n : of) sum += n;
    return sum;
}

TEST_F(fork_join_test, a_dispatched_tree_lives_in_as_many_fibers_as_it_is_deep) {
    ums::run(one_processor, [] {
        for (const int depth : {10, 20, 24}) {
            census all;
            EXPECT_GT(fib(depth, all, launch::dispatch), 0);
            EXPECT_LE(all.most(), depth);
        }
    });
}

// Without a detector: a fiber that was handed off comes back as one of the others, and walks on
// beside the rest.
TEST_F(fork_join_test, thieves_add_as_many_fibers_each) {
    ums::run({.processors = 4, .block = ums::block_detection::off}, [] {
        census all;
        EXPECT_GT(fib(24, all, launch::dispatch), 0);
        EXPECT_LE(all.most(), 2 * 4 * 24);
    });
}

// Without a flag a creator goes on, so all children of a level live: of this tree a half of `n` at
// each level, and a quarter of n * n in all. So few more do because some were given a turn.
TEST_F(fork_join_test, by_default_a_tree_of_fibers_is_walked_depth_first) {
    ums::run(one_processor, [] {
        constexpr int n = 24;  // 75,024 forks.
        census all;
        EXPECT_EQ(fib(n, all, launch::post), 46'368);
        EXPECT_LE(all.most(), n * n);
    });
}

TEST_F(fork_join_test, by_default_a_tree_of_values_is_walked_depth_first) {
    ums::run(one_processor, [] {
        constexpr int n = 24;
        census all;
        EXPECT_EQ(fib_of_values(n, all), 46'368);
        EXPECT_LE(all.most(), n * n);
    });
}

constexpr int levels = 4;  // 11,110 forks.
constexpr int few = 8 * levels * fan;

TEST_F(fork_join_test, by_default_a_tree_of_scopes_is_walked_depth_first) {
    for (const unsigned processors : {1u, 2u}) {
        const ums::options off{.processors = processors, .block = ums::block_detection::off};
        ums::run(off, [processors] {
            census all;
            const auto fork = [&](auto child) {
                ums::scope children;
                for (int i = 0; i < fan; ++i) {
                    all.born();
                    children.spawn(child, i);
                }
                children.join();
            };
            EXPECT_EQ(leaves(levels, all, fork), 10'000);
            EXPECT_LE(all.most(), few * static_cast<int>(processors));
        });
    }
}

TEST_F(fork_join_test, children_may_be_joined_in_any_order) {
    ums::run(one_processor, [] {
        for (const bool first_to_last : {true, false}) {
            census all;
            const auto fork = [&](auto child) {
                std::vector<ums::fiber> children;
                for (int i = 0; i < fan; ++i) {
                    all.born();
                    children.emplace_back(child, i);
                }
                if (!first_to_last) std::reverse(children.begin(), children.end());
                for (ums::fiber& f : children) f.join();
            };
            EXPECT_EQ(leaves(levels, all, fork), 10'000);
            EXPECT_LE(all.most(), few);
        }
    });
}

TEST_F(fork_join_test, so_is_a_tree_that_waits_for_a_group_or_for_futures) {
    ums::run(one_processor, [] {
        census all;
        const auto by_group = [&](auto child) {
            ums::wait_group children{fan};
            for (int i = 0; i < fan; ++i) {
                all.born();
                ums::fiber{[&children, child, i] {
                    child(i);
                    children.done();
                }}.detach();
            }
            children.wait();
        };
        EXPECT_EQ(leaves(levels, all, by_group), 10'000);
        const auto by_futures = [&](auto child) {
            std::vector<ums::future<void>> children;
            for (int i = 0; i < fan; ++i) {
                all.born();
                children.push_back(ums::async(std::launch::async, child, i));
            }
            for (auto& f : children) f.get();
        };
        EXPECT_EQ(leaves(levels, all, by_futures), 10'000);
        EXPECT_LE(all.most(), few);
    });
}

// The newest is in the run-next slot, as ever; a creator that does not wait changes nothing.
TEST_F(fork_join_test, children_that_nobody_waits_for_keep_their_order) {
    std::vector<int> order;
    ums::run(one_processor, [&order] {
        std::vector<ums::fiber> children;
        for (int i = 0; i < 5; ++i) children.emplace_back([&order, i] { order.push_back(i); });
        while (order.size() != 5) this_fiber::yield();
        for (ums::fiber& f : children) f.join();
    });
    EXPECT_EQ(order, (std::vector{4, 0, 1, 2, 3}));
}

TEST_F(fork_join_test, children_that_are_waited_for_run_newest_first) {
    std::vector<int> order;
    ums::run(one_processor, [&order] {
        std::vector<ums::fiber> children;
        for (int i = 0; i < 5; ++i) children.emplace_back([&order, i] { order.push_back(i); });
        for (ums::fiber& f : children) f.join();
    });
    EXPECT_EQ(order, (std::vector{4, 3, 2, 1, 0}));
}

// A round has at most 61 switches, and a fork and join makes two.
void others_have_their_turns(launch how) {
    ums::run(one_processor, [how] {
        constexpr int forks = 20'000, in_a_round = 61 / 2;
        bool stop = false;
        long turns[3] = {};
        std::vector<ums::fiber> others;
        for (long& mine : turns)
            others.emplace_back([&mine, &stop] {
                while (!stop) {
                    ++mine;
                    this_fiber::yield();
                }
            });
        this_fiber::yield();
        for (int i = 0; i < forks; ++i) ums::fiber{{.launch = how}, [] {}}.join();
        stop = true;
        for (ums::fiber& f : others) f.join();
        for (const long mine : turns) EXPECT_GE(mine, forks / in_a_round / 2);
    });
}

TEST_F(fork_join_test, others_have_a_turn_in_each_round_beside_a_dispatcher) {
    others_have_their_turns(launch::dispatch);
}

TEST_F(fork_join_test, others_have_a_turn_in_each_round_beside_forks_and_joins) {
    others_have_their_turns(launch::post);
}

// While a pinned fiber is ready, a round is one switch long.
TEST_F(fork_join_test, a_walk_goes_on_where_rounds_are_short) {
    for (const launch how : {launch::dispatch, launch::post})
        ums::run(one_processor, [how] {
            bool stop = false;
            const auto yields = [&stop] {
                while (!stop) this_fiber::yield();
            };
            ums::fiber pinned{{.pinned = true}, yields}, one{yields}, another{yields};
            for (int i = 0; i < 100; ++i) ums::fiber{{.launch = how}, [] {}}.join();
            stop = true;
            for (ums::fiber* f : {&pinned, &one, &another}) f->join();
        });
}

// Two that make each other ready until is_over() holds.
struct pair_of_semaphores {
    ums::counting_semaphore<> ping{0}, pong{0};

    template <class F>
    void ask(F is_over) {
        while (!is_over()) {
            ping.release();
            pong.acquire();
        }
        ping.release();
    }
    template <class F>
    void answer(F is_over) {
        while (!is_over()) {
            ping.acquire();
            pong.release();
        }
        pong.release();
    }
};

// The creator of a dispatched fiber lies behind such a pair.
TEST_F(fork_join_test, a_pair_that_wakes_itself_does_not_keep_a_creator_waiting) {
    ums::run(one_processor, [] {
        bool stop = false;
        const auto is_over = [&stop] { return stop; };
        pair_of_semaphores pair;
        ums::fiber answers{[&] { pair.answer(is_over); }};
        ums::fiber asks{{.launch = launch::dispatch}, [&] { pair.ask(is_over); }};
        stop = true;
        asks.join();
        answers.join();
    });
}

// The pair's members make each other ready, so of the others one always lies behind.
TEST_F(fork_join_test, a_pair_that_wakes_itself_keeps_no_sibling_waiting) {
    ums::run(one_processor, [] {
        constexpr int count = 24;
        int begun = 0;
        const auto is_over = [&begun] { return begun == count; };
        pair_of_semaphores pair;
        ums::scope all;
        for (int i = 0; i < count; ++i) all.spawn([&begun] { ++begun; });
        all.spawn([&] { pair.ask(is_over); });
        all.spawn([&] { pair.answer(is_over); });
        all.join();
    });
}

// The creator of a dispatched fiber is older than the children of that.
TEST_F(fork_join_test, a_walk_without_end_below_a_creator_keeps_nobody_waiting) {
    ums::run(one_processor, [] {
        constexpr int count = 4;
        int begun = 0;
        ums::fiber dispatched{{.launch = launch::dispatch}, [&begun] {
                                  ums::scope servers;
                                  for (int i = 0; i < count; ++i)
                                      servers.spawn([&begun] {
                                          ++begun;
                                          while (begun != count) ums::fiber{[] {}}.join();
                                      });
                                  servers.join();
                              }};
        dispatched.join();
    });
}

TEST_F(fork_join_test, more_others_than_a_turn_takes_have_it_in_the_end) {
    ums::run(one_processor, [] {
        constexpr int count = 1'000;
        int begun = 0;
        ums::scope others;
        for (int i = 0; i < count; ++i) others.spawn([&begun] { ++begun; });
        while (begun != count) ums::fiber{{.launch = launch::dispatch}, [] {}}.join();
        others.join();
    });
}

// The last of them forks and joins until the others have run. Its walk never ends by itself.
TEST_F(fork_join_test, a_walk_without_end_does_not_keep_its_elder_siblings_waiting) {
    ums::run(one_processor, [] {
        constexpr int count = 6;
        int begun = 0;
        ums::scope servers;
        for (int i = 0; i < count; ++i)
            servers.spawn([&begun] {
                ++begun;
                while (begun != count) ums::fiber{[] {}}.join();
            });
        servers.join();
    });
}

// What an accept loop does that always finds a connection.
TEST_F(fork_join_test, a_fiber_that_spawns_without_end_keeps_nobody_waiting) {
    ums::run(one_processor, [] {
        constexpr int enough = 100;
        int handled = 0;
        bool stop = false;
        ums::fiber other{[&] {
            while (handled < enough) this_fiber::yield();
            stop = true;
        }};
        ums::scope handlers;
        while (!stop) {
            handlers.spawn([&handled] { ++handled; });
            this_fiber::yield();
        }
        handlers.join();
        other.join();
    });
}

}  // namespace
