// SPDX-License-Identifier: MIT

// What a creator makes ready, and what becomes of it when the creator waits. tests/sched/fork_join
// shows what that means for trees of fibers.
#include "sched/queue/run_queue.hpp"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "support/scale.hpp"
#include "support/seed.hpp"

namespace {

using namespace ums;
using sched::run_queue;

class run_queue_test : public ::testing::Test {
protected:
    run_queue_test() { q.start_round(run_queue::round); }

    // Descriptors without stacks, because a queue holds only addresses.
    sched::fiber& at(std::size_t i) {
        while (fibers_.size() <= i)
            fibers_.push_back(std::make_unique<sched::fiber>(mem::stack_head{}));
        return *fibers_[i];
    }
    void make(std::initializer_list<std::size_t> numbers) {
        for (const std::size_t i : numbers) {
            at(i).is_new.set(true);
            q.push_new(at(i));
        }
    }
    // The next one runs.
    sched::fiber* switch_over() {
        if (q.count_switch()) q.start_round(run_queue::round);
        return q.pop();
    }
    // The numbers of all that are ready, in their order.
    std::vector<std::size_t> drained() {
        std::vector<std::size_t> all;
        while (const sched::fiber* f = q.pop())
            for (std::size_t i = 0; i < fibers_.size(); ++i)
                if (fibers_[i].get() == f) all.push_back(i);
        return all;
    }

    run_queue q;

private:
    std::deque<std::unique_ptr<sched::fiber>> fibers_;
};

using order = std::vector<std::size_t>;

TEST_F(run_queue_test, of_what_a_creator_makes_the_last_is_next_and_the_others_are_behind) {
    q.push_back(at(0));
    make({1, 2, 3});
    EXPECT_EQ(drained(), (order{3, 0, 1, 2}));
}

TEST_F(run_queue_test, what_the_creator_waits_for_is_next_the_newest_first) {
    q.push_back(at(0));
    make({1, 2, 3, 4});
    EXPECT_TRUE(q.has_new());
    q.call_new();
    EXPECT_TRUE(q.has_walk());
    q.call_new();  // Once more it changes nothing.
    EXPECT_EQ(drained(), (order{4, 3, 2, 1, 0}));
}

TEST_F(run_queue_test, a_single_new_one_is_next_anyway) {
    q.push_back(at(0));
    make({1});
    EXPECT_FALSE(q.has_new());
    q.call_new();
    EXPECT_FALSE(q.has_walk());
    EXPECT_EQ(drained(), (order{1, 0}));
}

TEST_F(run_queue_test, only_what_was_made_since_the_last_switch_is_called) {
    q.push_back(at(0));
    make({1, 2, 3});
    EXPECT_EQ(switch_over(), &at(3));
    q.call_new();  // It has made none.
    EXPECT_FALSE(q.has_walk());
    make({4, 5, 6});
    q.call_new();
    EXPECT_EQ(drained(), (order{6, 5, 4, 0, 1, 2}));
}

TEST_F(run_queue_test, a_walk_goes_depth_first) {
    q.push_back(at(0));
    make({1, 2, 3});
    q.call_new();
    EXPECT_EQ(switch_over(), &at(3));
    make({4, 5});
    q.call_new();
    EXPECT_EQ(switch_over(), &at(5));
    make({6, 7});
    q.call_new();
    EXPECT_EQ(drained(), (order{7, 6, 4, 2, 1, 0}));
}

// It takes the oldest.
TEST_F(run_queue_test, what_a_thief_has_left_is_called) {
    make({1, 2, 3, 4, 5});
    run_queue thief;
    EXPECT_EQ(thief.steal(q, 100, false), 2u);
    q.call_new();
    EXPECT_EQ(drained(), (order{5, 4, 3}));
    EXPECT_EQ(thief.pop(), &at(1));
    EXPECT_EQ(thief.pop(), &at(2));
    EXPECT_EQ(thief.pop(), nullptr);
}

// A write that wakes a reader, an unpark: the reader is among those that are called.
TEST_F(run_queue_test, what_became_ready_in_between_keeps_every_fiber) {
    q.push_back(at(0));
    make({1});
    q.push_next(at(2));
    make({3, 4});
    q.call_new();
    order all = drained();
    EXPECT_EQ(all.front(), 4u);
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all, (order{0, 1, 2, 3, 4}));
}

TEST_F(run_queue_test, a_new_one_belongs_to_its_walk_when_the_round_ends) {
    q.push_back(at(0));
    make({1, 2});
    q.call_new();
    q.end_run_next();
    EXPECT_EQ(drained(), (order{2, 1, 0}));
    q.push_back(at(0));
    make({1, 2});
    q.end_run_next();  // Without a walk it is one of the others.
    EXPECT_EQ(drained(), (order{0, 1, 2}));
}

TEST_F(run_queue_test, is_a_stack_before_a_queue_under_random_operations) {
    std::mt19937_64 rng{test_seed()};
    std::deque<std::size_t> model, outside;
    std::size_t in_front = 0, made = 0, slot = 0;  // 0: the slot is empty.
    for (std::size_t i = 1; i <= 300; ++i) outside.push_back(i);
    const auto ready = [&](std::size_t i) {
        if (slot != 0) model.push_back(slot);
        slot = i;
    };
    for (int step = 0; step < scaled(200'000, 50'000); ++step) {
        const auto dice = rng() % 10;
        if (dice < 4 && !outside.empty()) {
            const std::size_t i = outside.front();
            outside.pop_front();
            if (dice == 0) {
                q.push_back(at(i));
                model.push_back(i);
            } else {
                q.push_new(at(i));
                ready(i);
                ++made;
            }
        } else if (dice < 5) {
            q.call_new();
            std::size_t n = std::min(made == 0 ? 0 : made - 1, model.size() - in_front);
            in_front += n;
            made = made != 0 ? 1 : 0;
            for (std::size_t place = 0; n != 0; --n, ++place) {
                const std::size_t newest = model.back();
                model.pop_back();
                model.insert(model.begin() + static_cast<std::ptrdiff_t>(place), newest);
            }
        } else if (dice < 8) {
            made = 0;
            std::size_t expected = slot;
            if (slot != 0) {
                slot = 0;
            } else if (!model.empty()) {
                expected = model.front();
                model.pop_front();
                in_front -= in_front != 0 ? 1 : 0;
            }
            ASSERT_EQ(switch_over(), expected != 0 ? &at(expected) : nullptr) << step;
            if (expected != 0) outside.push_back(expected);
        }
    }
}

}  // namespace
