// SPDX-License-Identifier: MIT

// Policies: the built-in ones keep their promises of order and fairness, and a user's own is
// obeyed.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <malloc.h>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/child.hpp"
#include "support/conservation.hpp"
#include "support/one_processor.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"
#include "ums/jfiber.hpp"
#include "ums/latch.hpp"
#include "ums/policy.hpp"
#include "ums/run.hpp"
#include "ums/this_fiber.hpp"

namespace {

namespace this_fiber = ums::this_fiber;

class policy_test : public conserving_test {};

// The most urgent fiber (the lowest tag) first. Written as a user would write it, with public
// headers alone.
class by_tag final : public ums::policy {
public:
    void attach(unsigned) override { ++attached; }
    void detach(unsigned) override { ++detached; }
    void ready(ums::fiber_ref f, unsigned) noexcept override {
        const std::lock_guard guard{lock_};
        queues_[f.tag()].push_back(f);
    }
    ums::fiber_ref next(unsigned) noexcept override {
        const std::lock_guard guard{lock_};
        for (auto& q : queues_)
            if (!q.empty()) return q.pop_front();
        return {};
    }
    bool empty(unsigned) const noexcept override {
        const std::lock_guard guard{lock_};
        for (const auto& q : queues_)
            if (!q.empty()) return false;
        return true;
    }

    std::atomic<int> attached{0}, detached{0};

private:
    mutable std::mutex lock_;
    std::array<ums::fiber_queue, 4> queues_;
};

TEST_F(policy_test, fifo_runs_in_the_order_of_arrival) {
    ums::run({.processors = 1,
              .policy = ums::policy_kind::global_fifo,
              .block = ums::block_detection::off},
             [] {
                 std::vector<int> order;
                 std::vector<ums::fiber> all;
                 for (int i = 0; i < 1000; ++i)
                     all.emplace_back([&order, i] {
                         order.push_back(i);
                         this_fiber::yield();
                         order.push_back(1000 + i);
                     });
                 for (auto& f : all) f.join();
                 for (int i = 0; i < 2000; ++i) ASSERT_EQ(order[static_cast<unsigned>(i)], i);
             });
}

TEST_F(policy_test, the_urgent_run_first) {
    ums::run({.processors = 1,
              .make_policy = [] { return std::make_unique<by_tag>(); },
              .block = ums::block_detection::off},
             [] {
                 std::vector<std::uint64_t> order;
                 std::vector<ums::fiber> all;
                 for (int i = 0; i < 200; ++i)
                     all.emplace_back(ums::fiber_options{.tag = static_cast<std::uint64_t>(i) % 4},
                                      [&order] { order.push_back(this_fiber::ref().tag()); });
                 for (auto& f : all) f.join();
                 EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
             });
}

// The fiber with the earliest tag first; a tag is any 64-bit number.
class by_deadline final : public ums::policy {
public:
    void attach(unsigned) override {}
    void detach(unsigned) override {}
    void ready(ums::fiber_ref f, unsigned) noexcept override {
        const std::lock_guard guard{lock_};
        queue_.push(f, f.tag());
    }
    ums::fiber_ref next(unsigned) noexcept override {
        const std::lock_guard guard{lock_};
        return queue_.pop_front();
    }
    bool empty(unsigned) const noexcept override {
        const std::lock_guard guard{lock_};
        return queue_.empty();
    }

private:
    mutable std::mutex lock_;
    ums::ordered_fiber_queue queue_;
};

TEST_F(policy_test, an_ordered_queue_runs_the_earliest_first_and_equals_in_turn) {
    ums::run({.processors = 1,
              .make_policy = [] { return std::make_unique<by_deadline>(); },
              .block = ums::block_detection::off},
             [] {
                 std::vector<std::pair<std::uint64_t, int>> order;
                 std::vector<ums::fiber> all;
                 std::mt19937_64 random{test_seed()};
                 for (int i = 0; i < 1000; ++i) {
                     const std::uint64_t key = i % 3 == 0 ? random() : random() % 10;
                     all.emplace_back(ums::fiber_options{.tag = key},
                                      [&order, key, i] { order.emplace_back(key, i); });
                 }
                 for (auto& f : all) f.join();
                 EXPECT_EQ(order.size(), 1000u);
                 EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
             });
}

TEST_F(policy_test, an_ordered_queue_gives_what_a_sorted_list_would) {
    ums::run(one_processor, [] {
        ums::latch go{1};
        std::vector<ums::fiber> all;
        for (int i = 0; i < 200; ++i) all.emplace_back([&] { go.wait(); });
        for (int i = 0; i < 3; ++i) this_fiber::yield();
        // They are parked, so their links are free for a queue of this test.
        std::mt19937_64 random{test_seed()};
        ums::ordered_fiber_queue queue;
        std::multimap<std::uint64_t, ums::fiber_ref> model;
        std::vector<ums::fiber_ref> outside;
        for (auto& f : all) outside.push_back(f.ref());
        EXPECT_EQ(queue.pop_front(), ums::fiber_ref{});
        for (int step = 0; step < 20'000; ++step) {
            if (!outside.empty() && random() % 2 == 0) {
                const std::uint64_t key = random() % 50;
                queue.push(outside.back(), key);
                model.emplace(key, outside.back());
                outside.pop_back();
            } else if (!model.empty()) {
                ASSERT_EQ(queue.front_key(), model.begin()->first);
                ASSERT_EQ(queue.pop_front(), model.begin()->second);
                outside.push_back(model.begin()->second);
                model.erase(model.begin());
            }
            ASSERT_EQ(queue.size(), model.size());
            ASSERT_EQ(queue.empty(), model.empty());
        }
        go.count_down();
        for (auto& f : all) f.join();
    });
}

TEST_F(policy_test, a_changed_tag_counts_from_the_next_time_it_is_ready) {
    ums::run({.processors = 1,
              .make_policy = [] { return std::make_unique<by_tag>(); },
              .block = ums::block_detection::off},
             [] {
                 std::vector<int> order;
                 ums::fiber lazy{{.tag = 1}, [&] {
                                     this_fiber::ref().set_tag(3);
                                     this_fiber::yield();
                                     order.push_back(3);
                                 }};
                 ums::fiber keen{{.tag = 2}, [&] { order.push_back(2); }};
                 lazy.join();
                 keen.join();
                 EXPECT_EQ(order, (std::vector<int>{2, 3}));
             });
}

TEST_F(policy_test, is_told_of_every_processor_that_comes_and_goes) {
    ums::run({.processors = 1}, [] {
        by_tag* seen = nullptr;
        {
            ums::cluster c{{.processors = 2, .make_policy = [&] {
                                auto made = std::make_unique<by_tag>();
                                seen = made.get();
                                return made;
                            }}};
            c.add_processor();
            EXPECT_EQ(seen->attached.load(), 3);
            c.remove_processor();
            EXPECT_EQ(seen->detached.load(), 1);
        }
    });
}

// Refuses every processor from the nth on.
class refusing final : public ums::policy {
public:
    explicit refusing(unsigned from) : from_{from} {}
    void attach(unsigned processor) override {
        if (processor >= from_) throw std::runtime_error{"no more"};
    }
    void detach(unsigned) override {}
    void ready(ums::fiber_ref f, unsigned) noexcept override {
        const std::lock_guard guard{lock_};
        queue_.push_back(f);
    }
    ums::fiber_ref next(unsigned) noexcept override {
        const std::lock_guard guard{lock_};
        return queue_.pop_front();
    }
    bool empty(unsigned) const noexcept override {
        const std::lock_guard guard{lock_};
        return queue_.empty();
    }

private:
    const unsigned from_;
    mutable std::mutex lock_;
    ums::fiber_queue queue_;
};

TEST_F(policy_test, one_that_refuses_a_processor_leaves_nothing_of_it) {
    ums::run({.processors = 1}, [] {
        const auto by = [](unsigned processors, unsigned from) {
            return ums::cluster_options{.processors = processors, .make_policy = [from] {
                                            return std::make_unique<refusing>(from);
                                        }};
        };
        ums::cluster small{by(1, 1)};
        const auto try_both = [&] {
            EXPECT_THROW(ums::cluster{by(3, 2)}, std::runtime_error);
            EXPECT_THROW(small.add_processor(), std::runtime_error);
            EXPECT_EQ(small.processors(), 1u);
        };
        for (int i = 0; i < 10; ++i) try_both();
        const auto in_use = [] {
            const auto all = ::mallinfo2();
            return all.uordblks + all.hblkhd;
        };
        const std::size_t before = in_use();
        constexpr std::size_t times = 200;
        for (std::size_t i = 0; i < times; ++i) try_both();
        EXPECT_LT(in_use(), before + times * 256);  // Far less than the size of a processor.
        int ran = 0;
        for (int i = 0; i < 100; ++i) ums::fiber{{.cluster = &small}, [&ran] { ++ran; }}.join();
        EXPECT_EQ(ran, 100);
    });
    EXPECT_THROW(
        ums::run({.processors = 1, .make_policy = [] { return std::make_unique<refusing>(0); }},
                 [] {}),
        std::runtime_error);
}

TEST_F(policy_test, a_dispatched_fiber_runs_at_once_under_every_policy) {
    for (int kind = 0; kind < 3; ++kind) {
        ums::options how = one_processor;
        if (kind == 1) how.policy = ums::policy_kind::global_fifo;
        if (kind == 2) how.make_policy = [] { return std::make_unique<by_tag>(); };
        ums::run(how, [] {
            for (int i = 0; i < 300; ++i) {
                bool ran = false;
                ums::fiber child{{.launch = ums::launch::dispatch}, [&] { ran = true; }};
                ASSERT_TRUE(ran);
                child.join();
            }
        });
    }
}

TEST_F(policy_test, two_that_wake_each_other_cannot_starve_a_third) {
    for (const auto kind : {ums::policy_kind::work_stealing, ums::policy_kind::global_fifo})
        ums::run({.processors = 1, .policy = kind, .block = ums::block_detection::off}, [] {
            std::atomic<bool> stop{false};
            ums::fiber_ref refs[2];
            std::vector<ums::fiber> pair;
            ums::latch done{2};
            for (int i = 0; i < 2; ++i)
                pair.emplace_back([&, i] {
                    refs[i] = this_fiber::ref();
                    while (!refs[1 - i]) this_fiber::yield();
                    while (!stop) {
                        refs[1 - i].unpark();
                        this_fiber::park();
                    }
                    refs[1 - i].unpark();
                    done.count_down();
                });
            // This ends only if this fiber gets its turns.
            for (int i = 0; i < 1000; ++i) this_fiber::yield();
            stop = true;
            done.wait();  // Until then each may be unparked, so none is joined.
            for (auto& f : pair) f.join();
        });
}

TEST_F(policy_test, one_unparked_from_outside_runs_although_others_yield_for_ever) {
    for (const auto kind : {ums::policy_kind::work_stealing, ums::policy_kind::global_fifo}) {
        ums::runtime started{{.processors = 1, .policy = kind}};
        std::atomic<bool> stop{false};
        ums::fiber waiting{[&] {
            this_fiber::park();
            stop = true;  // Only now the other fibers end.
        }};
        std::vector<ums::fiber> others;
        for (int i = 0; i < 10; ++i)
            others.emplace_back([&] {
                while (!stop) this_fiber::yield();
            });
        waiting.ref().unpark();
        waiting.join();
        for (auto& f : others) f.join();
    }
}

TEST_F(policy_test, a_yield_lets_all_others_run_once) {
    ums::run(one_processor, [] {
        std::array<int, 50> turns{};
        std::vector<ums::fiber> all;
        int most_ahead = 0;
        for (std::size_t i = 0; i < turns.size(); ++i)
            all.emplace_back([&, i] {
                for (int k = 0; k < 200; ++k) {
                    ++turns[i];
                    const auto [least, most] = std::minmax_element(turns.begin(), turns.end());
                    most_ahead = std::max(most_ahead, *most - *least);
                    this_fiber::yield();
                }
            });
        for (auto& f : all) f.join();
        EXPECT_LE(most_ahead, 2);
    });
}

TEST_F(policy_test, a_fiber_waiting_in_the_next_slot_runs_elsewhere_if_its_waker_computes) {
    ums::run({.processors = 2}, [] {
        std::atomic<bool> ran{false};
        ums::fiber woken{[&] {
            this_fiber::park();
            ran = true;
        }};
        this_fiber::yield();
        woken.ref().unpark();
        while (!ran) {
        }  // Ends only if another processor takes the woken fiber.
        woken.join();
    });
}

TEST_F(policy_test, a_deadline_is_kept_although_its_processor_computes) {
    ums::run({.processors = 2}, [] {
        std::atomic<bool> woke{false};
        ums::fiber sleeper{[&] {
            this_fiber::sleep_for(std::chrono::milliseconds{1});
            woke = true;
        }};
        while (!woke) {
        }
        sleeper.join();
    });
}

// Sleeps where its processor cannot be handed on.
class sleepy final : public ums::policy {
public:
    void attach(unsigned) override {}
    void detach(unsigned) override {}
    void ready(ums::fiber_ref f, unsigned) noexcept override {
        std::this_thread::sleep_for(std::chrono::milliseconds{20});
        const std::lock_guard guard{lock_};
        queue_.push_back(f);
    }
    ums::fiber_ref next(unsigned) noexcept override {
        const std::lock_guard guard{lock_};
        return queue_.pop_front();
    }
    bool empty(unsigned) const noexcept override {
        const std::lock_guard guard{lock_};
        return queue_.empty();
    }

private:
    mutable std::mutex lock_;
    ums::fiber_queue queue_;
};

const child_program sleeps_in_ready{
    "sleeps_in_ready", [](const child_arguments&) {
        ums::run({.processors = 1,
                  .make_policy = [] { return std::make_unique<sleepy>(); },
                  .block = ums::block_detection::monitor},
                 [] {
                     // The detector begins where something blocks.
                     for (int i = 0; i < 20; ++i) ums::fiber{[] {}}.join();
                 });
        return 0;
    }};

TEST_F(policy_test, one_that_sleeps_in_a_method_is_named_once) {
    const child_end end = run_child("sleeps_in_ready");
    EXPECT_EQ(end.code, 0) << end;
    EXPECT_EQ(end.err_lines(), 1u) << end;
    EXPECT_EQ(end.err.find("ums: the policy of cluster main sleeps in one of its methods"), 0u)
        << end;
}

}  // namespace
