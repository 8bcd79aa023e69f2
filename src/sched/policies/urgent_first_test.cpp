// SPDX-License-Identifier: MIT
#include "sched/policies/urgent_first.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <random>
#include <stop_token>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/conservation.hpp"
#include "support/one_processor.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"
#include "ums/fiber.hpp"
#include "ums/jfiber.hpp"
#include "ums/mutex.hpp"
#include "ums/run.hpp"
#include "ums/this_fiber.hpp"

namespace ums {

namespace {

using sched::urgent_first_policy;

class urgent_first_test : public conserving_test {};

// Runs it with a known order of turns, and whatever UMS_POLICY says.
void run_by(policy_kind kind, const auto& function) {
    run(one_processor, [&] {
        cluster own{{.name = "own", .policy = kind, .time_slice_us = 0}};
        fiber{{.cluster = &own, .priority = most_priority}, function}.join();
    });
}

TEST_F(urgent_first_test, the_most_urgent_run_first_and_equals_in_turn) {
    run_by(policy_kind::priority, [] {
        std::vector<std::pair<int, int>> order;
        std::vector<fiber> all;
        for (int i = 0; i < 800; ++i) {
            const int priority = least_priority + i * 5 % 8;
            all.emplace_back(fiber_options{.priority = priority},
                             [&order, priority, i] { order.emplace_back(-priority, i); });
        }
        for (fiber& f : all) f.join();
        ASSERT_EQ(order.size(), all.size());
        // Within the budget: at most one in 64 is out of order.
        std::size_t out_of_order = 0;
        for (std::size_t i = 1; i < order.size(); ++i) out_of_order += order[i] < order[i - 1];
        EXPECT_LE(out_of_order, order.size() / urgent_first_policy::budget * 7);
        EXPECT_TRUE(std::is_sorted(order.begin(), order.begin() + urgent_first_policy::budget));
    });
}

// An urgent fiber that yields all the time, and others.
TEST_F(urgent_first_test, the_less_urgent_have_the_turns_of_the_budget) {
    run_by(policy_kind::priority, [] {
        std::vector<fiber> all;
        std::vector<int> turns(8);
        bool stop = false;
        int yields = 0;
        for (int i = 0; i < 8; ++i)
            all.emplace_back(fiber_options{.priority = least_priority + i}, [&, i] {
                while (!stop) {
                    ++turns[static_cast<unsigned>(i)];
                    this_fiber::yield();
                    if (i == 7 && ++yields == 100'000) stop = true;
                }
            });
        for (fiber& f : all) f.join();
        for (int i = 0; i < 7; ++i) {
            EXPECT_GE(turns[static_cast<unsigned>(i)],
                      100'000 / int{urgent_first_policy::budget + 8})
                << i;
            EXPECT_LE(turns[static_cast<unsigned>(i)],
                      100'000 / int{urgent_first_policy::budget - 8})
                << i;
        }
    });
}

// How many of 100 others run between an urgent fiber's wake-up and its run, in 1,000 times; returns
// the 990th.
int overtaken(policy_kind kind) {
    int p99 = 0;
    run_by(kind, [&] {
        bool stop = false;
        std::uint64_t runs = 0;
        std::uint64_t woken_at = 0;
        std::vector<int> between;
        jfiber urgent{fiber_options{.priority = 3}, [&] {
                          while (!stop) {
                              this_fiber::park();
                              between.push_back(static_cast<int>(runs - woken_at));
                          }
                      }};
        std::vector<fiber> others;
        for (int i = 0; i < 100; ++i)
            others.emplace_back(fiber_options{.priority = -1}, [&, i] {
                for (int round = 0; round < 1000; ++round) {
                    ++runs;
                    if (i == round % 100) {
                        woken_at = runs;
                        urgent.ref().unpark();
                    }
                    this_fiber::yield();
                }
            });
        for (fiber& f : others) f.join();
        stop = true;
        urgent.ref().unpark();
        urgent.join();
        EXPECT_GE(between.size(), 900u);
        std::sort(between.begin(), between.end());
        p99 = between[between.size() * 99 / 100];
    });
    return p99;
}

TEST_F(urgent_first_test, an_urgent_fiber_runs_long_before_it_would_by_the_others_order) {
    const int urgent = overtaken(policy_kind::priority);
    const int fifo = overtaken(policy_kind::global_fifo);
    EXPECT_LE(urgent, 1);
    EXPECT_GE(fifo, 20 * std::max(urgent, 1));
}

// A fiber of low priority holds a mutex that an urgent one waits for, and one in between wants all
// the time there is.
template <class Mutex>
int turns_until_the_urgent_has_it(int low, bool ready_already) {
    int turns = 0;
    run_by(policy_kind::priority, [&] {
        Mutex mutex;
        bool is_held = false, has_it = false, waits = false;
        fiber holder{{.priority = low}, [&] {
                         mutex.lock();
                         is_held = true;
                         if (!ready_already)
                             while (!waits) this_fiber::park();
                         for (int i = 0; i < 100; ++i) this_fiber::yield();
                         mutex.unlock();
                         EXPECT_EQ(this_fiber::ref().effective_priority(), low);
                     }};
        while (!is_held) this_fiber::yield();  // Within the budget.
        fiber urgent{{.priority = 3}, [&] {
                         waits = true;
                         holder.ref().unpark();
                         mutex.lock();
                         has_it = true;
                         mutex.unlock();
                     }};
        fiber middle{{.priority = 0}, [&] {
                         while (!has_it) {
                             ++turns;
                             this_fiber::yield();
                         }
                     }};
        urgent.join();
        middle.join();
        holder.join();
    });
    return turns;
}

TEST_F(urgent_first_test, the_holder_of_a_mutex_inherits_the_priority_of_its_waiter) {
    for (const bool ready_already : {false, true}) {
        // Alone, the holder would run once in the budget: after some 6,400 turns.
        EXPECT_LE(turns_until_the_urgent_has_it<mutex>(-4, ready_already), 10);
        EXPECT_LE(turns_until_the_urgent_has_it<timed_mutex>(-1, ready_already), 10);
        EXPECT_LE(turns_until_the_urgent_has_it<fair_mutex>(-2, ready_already), 10);
        EXPECT_LE(turns_until_the_urgent_has_it<recursive_mutex>(-3, ready_already), 10);
    }
}

// Fibers of these priorities wait for a mutex in this order. Returns their priorities, and their
// effective ones, in the order in which they get it.
template <class Mutex>
std::vector<std::pair<int, int>> order_of(const std::vector<int>& priorities) {
    std::vector<std::pair<int, int>> order;
    run_by(policy_kind::priority, [&] {
        Mutex m;
        std::vector<fiber> all;
        std::size_t came = 0;
        m.lock();
        for (const int priority : priorities) {
            all.emplace_back(fiber_options{.priority = priority}, [&, priority] {
                ++came;
                const std::lock_guard guard{m};
                order.emplace_back(priority, this_fiber::ref().effective_priority());
            });
            while (came != all.size()) this_fiber::yield();  // It continues until the fiber waits.
        }
        EXPECT_TRUE(order.empty());
        m.unlock();
        for (fiber& f : all) f.join();
    });
    return order;
}

TEST_F(urgent_first_test, of_the_waiters_of_a_mutex_the_most_urgent_has_it_first) {
    EXPECT_EQ(
        order_of<mutex>({-4, 1, 0, 3, 1, -1}),
        (std::vector<std::pair<int, int>>{{3, 3}, {1, 1}, {1, 1}, {0, 0}, {-1, -1}, {-4, -4}}));
}

TEST_F(urgent_first_test, a_fair_mutex_goes_to_the_first_which_is_as_urgent_as_those_behind_it) {
    EXPECT_EQ(
        order_of<fair_mutex>({-4, 1, 0, 3, 1, -1}),
        (std::vector<std::pair<int, int>>{{-4, 3}, {1, 3}, {0, 3}, {3, 3}, {1, 1}, {-1, -1}}));
}

TEST_F(urgent_first_test, a_waiter_of_a_mutex_is_passed_over_a_bounded_number_of_times) {
    std::vector<int> priorities(40, 1);
    priorities.front() = -4;
    const auto order = order_of<mutex>(priorities);
    ASSERT_EQ(order.size(), priorities.size());
    EXPECT_EQ(order[overtakes_most].first, -4);
}

TEST_F(urgent_first_test, a_waiter_of_a_cluster_without_priorities_has_none) {
    run_by(policy_kind::priority, [] {
        cluster plain{{.name = "plain", .policy = policy_kind::global_fifo}};
        const fiber_ref self = this_fiber::ref();
        self.set_priority(-4);
        mutex m;
        m.lock();
        fiber other{{.cluster = &plain, .priority = 3}, [&] {
                        m.lock();
                        m.unlock();
                    }};
        while (self.effective_priority() == -4) this_fiber::yield();
        EXPECT_EQ(self.effective_priority(), 0);
        m.unlock();
        other.join();
    });
}

// The holder leaves its cluster, which is then destroyed, while another cluster's fiber raises the
// holder.
TEST_F(urgent_first_test, a_holder_is_raised_while_it_leaves_its_cluster_and_that_goes) {
    run_by(policy_kind::priority, [] {
        cluster other{{.name = "other", .policy = policy_kind::priority}};
        for (int round = 0; round < 200; ++round) {
            mutex m;
            std::optional<cluster> first{
                std::in_place, cluster_options{.name = "first", .policy = policy_kind::priority}};
            std::atomic<bool> is_held = false;
            fiber holder{{.cluster = &*first, .priority = -4}, [&] {
                             m.lock();
                             is_held = true;
                             this_fiber::migrate(other);
                             m.unlock();
                             EXPECT_EQ(this_fiber::ref().effective_priority(), -4);
                         }};
            fiber urgent{{.priority = 3}, [&] {
                             while (!is_held) this_fiber::yield();
                             m.lock();
                             m.unlock();
                         }};
            this_fiber::yield();
            first.reset();
            holder.join();
            urgent.join();
        }
    });
}

TEST_F(urgent_first_test, a_holder_falls_back_with_each_mutex_that_it_releases) {
    run_by(policy_kind::priority, [] {
        const fiber_ref self = this_fiber::ref();
        self.set_priority(-4);
        mutex a, b;
        a.lock();
        b.lock();
        int waiting = 0;
        const auto wait_for = [&](mutex& m) {
            ++waiting;
            m.lock();
            m.unlock();
        };
        fiber first{{.priority = 1}, [&] { wait_for(a); }};
        fiber second{{.priority = 2}, [&] { wait_for(b); }};
        while (waiting != 2) this_fiber::yield();
        EXPECT_EQ(self.effective_priority(), 2);
        b.unlock();
        EXPECT_EQ(self.effective_priority(), 1);
        a.unlock();
        EXPECT_EQ(self.effective_priority(), -4);
        first.join();
        second.join();
    });
}

// --- Along chains: a holder that waits for a mutex itself lends what it was lent -----------------

// Fibers that each hold a mutex, and each but the first waits for that of the one before it.
template <class First, class... Rest>
class chain {
public:
    // Fiber i has priority i - 4. Returns once all of them wait, or hold, the first one parked.
    chain() {
        refs_[0] = begin(0, [this] {
            const std::lock_guard mine{std::get<0>(mutexes_)};
            ++holding_;
            while (!go_) this_fiber::park();
        });
        add_rest(std::index_sequence_for<Rest...>{});
        while (holding_ != count) this_fiber::yield();       // Within the budget.
        for (int i = 0; i < 1000; ++i) this_fiber::yield();  // Until they wait.
    }
    ~chain() {
        let_go();
        for (fiber& f : all_) f.join();
    }
    void let_go() {
        go_ = true;
        refs_[0].unpark();
    }
    auto& last() { return std::get<sizeof...(Rest)>(mutexes_); }
    [[nodiscard]] std::vector<int> priorities() const {
        std::vector<int> all;
        for (const fiber_ref r : refs_) all.push_back(r.effective_priority());
        return all;
    }

private:
    static constexpr int count = 1 + sizeof...(Rest);

    template <std::size_t... I>
    void add_rest(std::index_sequence<I...>) {
        ((refs_[I + 1] = begin(I + 1,
                               [this] {
                                   const std::lock_guard mine{std::get<I + 1>(mutexes_)};
                                   ++holding_;
                                   while (holding_ != count) this_fiber::yield();
                                   const std::lock_guard before{std::get<I>(mutexes_)};
                               })),
         ...);
    }
    fiber_ref begin(std::size_t i, auto function) {
        all_.emplace_back(fiber_options{.priority = static_cast<int>(i) - 4}, function);
        return all_.back().ref();
    }

    std::tuple<First, Rest...> mutexes_;
    std::vector<fiber> all_;
    std::array<fiber_ref, count> refs_;
    int holding_ = 0;
    bool go_ = false;
};

TEST_F(urgent_first_test, a_priority_is_passed_on_along_a_chain_of_holders) {
    run_by(policy_kind::priority, [] {
        chain<mutex, recursive_mutex, timed_mutex, fair_mutex> all;
        EXPECT_EQ(all.priorities(), (std::vector{-1, -1, -1, -1}));  // By the last of them.
        int turns = 0;
        bool has_it = false;
        fiber urgent{{.priority = 3}, [&] {
                         EXPECT_EQ(all.priorities(), (std::vector{-1, -1, -1, -1}));
                         all.let_go();
                         const std::lock_guard guard{all.last()};
                         has_it = true;
                     }};
        fiber middle{{.priority = 1}, [&] {
                         while (!has_it) {
                             ++turns;
                             this_fiber::yield();
                         }
                     }};
        urgent.join();
        middle.join();
        // Without it each link would wait for the turns of the budget, 64 of them or more.
        EXPECT_LE(turns, 10);
    });
}

TEST_F(urgent_first_test, a_waiter_that_gives_up_takes_back_what_it_lent_along_the_chain) {
    run_by(policy_kind::priority, [] {
        chain<mutex, mutex, timed_mutex> all;
        EXPECT_EQ(all.priorities(), (std::vector{-2, -2, -2}));
        std::stop_source patience;
        fiber patient{{.priority = 1},
                      [&] { EXPECT_FALSE(all.last().lock(patience.get_token())); }};
        while (all.priorities() != std::vector{1, 1, 1}) this_fiber::yield();
        std::vector<int> meanwhile;
        std::stop_source impatience;
        fiber watcher{{.priority = 3}, [&] {
                          this_fiber::park();
                          meanwhile = all.priorities();
                          impatience.request_stop();
                      }};
        fiber urgent{{.priority = 2}, [&] {
                         watcher.ref().unpark();
                         EXPECT_FALSE(all.last().lock(impatience.get_token()));
                         EXPECT_EQ(all.priorities(), (std::vector{1, 1, 1}));
                         EXPECT_FALSE(all.last().try_lock_for(std::chrono::milliseconds{1}));
                         EXPECT_EQ(all.priorities(), (std::vector{1, 1, 1}));
                     }};
        urgent.join();
        watcher.join();
        EXPECT_EQ(meanwhile, (std::vector{2, 2, 2}));
        patience.request_stop();
        patient.join();
        EXPECT_EQ(all.priorities(), (std::vector{-2, -2, -2}));
    });
}

TEST_F(urgent_first_test, holders_that_wait_for_each_other_fall_back_once_they_give_up) {
    run_by(policy_kind::priority, [] {
        timed_mutex a, b;
        int holding = 0;
        const auto both = [&](timed_mutex& first, timed_mutex& second, int limit) {
            const std::lock_guard guard{first};
            ++holding;
            while (holding != 2) this_fiber::yield();
            if (second.try_lock_for(std::chrono::milliseconds{limit})) second.unlock();
        };
        fiber one{{.priority = -4}, [&] {
                      both(a, b, 20);
                      EXPECT_EQ(this_fiber::ref().effective_priority(), -4);
                  }};
        fiber other{{.priority = -3}, [&] {
                        both(b, a, 10);
                        EXPECT_EQ(this_fiber::ref().effective_priority(), -3);
                    }};
        while (holding != 2) this_fiber::yield();
        fiber urgent{{.priority = 3}, [&] {
                         if (a.try_lock_for(std::chrono::milliseconds{1})) a.unlock();
                     }};
        urgent.join();
        one.join();
        other.join();
    });
}

// What is lent reaches a fiber of a cluster without priorities and goes on from there.
TEST_F(urgent_first_test, a_chain_leads_through_a_cluster_without_priorities) {
    run_by(policy_kind::priority, [] {
        cluster plain{{.name = "plain", .policy = policy_kind::global_fifo}};
        const fiber_ref self = this_fiber::ref();
        self.set_priority(-4);
        mutex a, b;
        a.lock();
        std::atomic<bool> has_b = false;
        fiber between{{.cluster = &plain}, [&] {
                          const std::lock_guard second{b};
                          has_b = true;
                          const std::lock_guard first{a};
                      }};
        while (!has_b) this_fiber::yield();
        fiber urgent{{.priority = 3}, [&] { const std::lock_guard second{b}; }};
        while (self.effective_priority() != 3) this_fiber::yield();
        a.unlock();
        EXPECT_EQ(self.effective_priority(), -4);
        urgent.join();
        between.join();
    });
}

// On several processors, with waits that give up and mutexes in any order: all fall back.
TEST_F(urgent_first_test, whatever_waits_and_gives_up_everybody_falls_back_in_the_end) {
    run({.processors = 2}, [] {
        cluster own{{.name = "own", .processors = 2, .policy = policy_kind::priority}};
        std::array<timed_mutex, 5> mutexes;
        std::vector<fiber> all;
        const std::uint64_t seed = test_seed();
        for (unsigned i = 0; i < 16; ++i)
            all.emplace_back(
                fiber_options{.cluster = &own, .priority = static_cast<int>(i % 8) - 4}, [&, i] {
                    std::mt19937_64 random{seed + i};
                    const fiber_ref self = this_fiber::ref();
                    for (int round = 0; round < scaled(2000, 100); ++round) {
                        std::vector<timed_mutex*> held;
                        for (int k = 0; k < 3; ++k) {
                            timed_mutex& m = mutexes[random() % mutexes.size()];
                            if (std::find(held.begin(), held.end(), &m) != held.end()) continue;
                            if (m.try_lock_for(std::chrono::microseconds{random() % 200}))
                                held.push_back(&m);
                            if (random() % 4 == 0) this_fiber::yield();
                        }
                        while (!held.empty()) {
                            const auto at = static_cast<std::ptrdiff_t>(random() % held.size());
                            held[static_cast<std::size_t>(at)]->unlock();
                            held.erase(held.begin() + at);
                        }
                        EXPECT_EQ(self.effective_priority(), self.priority());
                    }
                });
        for (fiber& f : all) f.join();
    });
}

}  // namespace

}  // namespace ums
