// SPDX-License-Identifier: MIT
#include "sched/queue/fiber_ring.hpp"

#include <algorithm>
#include <deque>
#include <memory>
#include <random>

#include <gtest/gtest.h>

#include "internal/failing_calls.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"

namespace {

using namespace ums;
using os::failing_calls;
using sched::fiber_ring;

// Descriptors without stacks, because a queue holds only addresses.
class fiber_ring_test : public ::testing::Test {
protected:
    sched::fiber& at(std::size_t i) {
        while (fibers_.size() <= i)
            fibers_.push_back(std::make_unique<sched::fiber>(mem::stack_head{}));
        return *fibers_[i];
    }

    ~fiber_ring_test() override { EXPECT_EQ(calls.mapped_bytes(), 0); }

    failing_calls calls;

private:
    std::deque<std::unique_ptr<sched::fiber>> fibers_;
};

TEST_F(fiber_ring_test, an_empty_one_gives_nothing_and_maps_nothing) {
    fiber_ring q, other;
    EXPECT_EQ(q.size(), 0u);
    EXPECT_TRUE(q.looks_empty());
    EXPECT_EQ(q.pop_front(), nullptr);
    EXPECT_EQ(q.rotate(at(0)), nullptr);
    EXPECT_EQ(q.size(), 0u);
    EXPECT_EQ(q.take_half(other, 10), 0u);
    EXPECT_EQ(calls.made(failing_calls::mmap), 0u);
}

TEST_F(fiber_ring_test, is_first_in_first_out) {
    fiber_ring q;
    for (std::size_t i = 0; i < 2'000; ++i) q.push_back(at(i));
    EXPECT_EQ(q.size(), 2'000u);
    EXPECT_FALSE(q.looks_empty());
    for (std::size_t i = 0; i < 2'000; ++i) ASSERT_EQ(q.pop_front(), &at(i));
    EXPECT_EQ(q.pop_front(), nullptr);
}

TEST_F(fiber_ring_test, what_is_pushed_to_the_front_comes_out_first) {
    fiber_ring q;
    // The very first one goes below index 0.
    for (std::size_t i = 0; i < 2'000; ++i) q.push_front(at(i));
    q.push_back(at(2'000));
    for (std::size_t i = 2'000; i-- > 0;) ASSERT_EQ(q.pop_front(), &at(i));
    EXPECT_EQ(q.pop_front(), &at(2'000));
    EXPECT_TRUE(q.looks_empty());
}

TEST_F(fiber_ring_test, a_yield_takes_the_front_and_goes_to_the_back) {
    for (const std::size_t n : {1u, 2u, 31u, 33u, 511u, 512u, 1'000u}) {
        fiber_ring q;
        for (std::size_t i = 1; i <= n; ++i) q.push_back(at(i));
        sched::fiber* self = &at(0);
        for (std::size_t step = 1; step <= 3 * n; ++step) {
            self = q.rotate(*self);
            ASSERT_EQ(self, &at(step % (n + 1)));
            ASSERT_EQ(q.size(), n);
        }
    }
}

TEST_F(fiber_ring_test, a_yield_in_a_full_ring_does_not_grow_it) {
    fiber_ring q;
    for (std::size_t i = 0; i < 512; ++i) q.push_back(at(i));
    ASSERT_EQ(calls.made(failing_calls::mmap), 1u);
    sched::fiber* self = &at(512);
    for (int i = 0; i < 5'000; ++i) self = q.rotate(*self);
    EXPECT_EQ(calls.made(failing_calls::mmap), 1u);
    EXPECT_EQ(q.size(), 512u);
}

TEST_F(fiber_ring_test, a_thief_takes_the_newer_half_in_order) {
    for (const std::uint32_t n : {0u, 1u, 2u, 3u, 10u, 511u, 512u, 513u, 3'000u}) {
        fiber_ring victim, thief;
        for (std::size_t i = 0; i < n; ++i) victim.push_back(at(i));
        const std::uint32_t taken = thief.take_half(victim, ~0u);
        EXPECT_EQ(taken, (n + 1) / 2);
        EXPECT_EQ(thief.size(), taken);
        EXPECT_EQ(victim.size(), n - taken);
        for (std::size_t i = 0; i < n - taken; ++i) ASSERT_EQ(victim.pop_front(), &at(i));
        for (std::size_t i = n - taken; i < n; ++i) ASSERT_EQ(thief.pop_front(), &at(i));
    }
}

TEST_F(fiber_ring_test, a_thief_takes_no_more_than_it_may) {
    fiber_ring victim, thief;
    for (std::size_t i = 0; i < 100; ++i) victim.push_back(at(i));
    thief.push_back(at(1'000));
    EXPECT_EQ(thief.take_half(victim, 7), 7u);
    EXPECT_EQ(thief.take_half(victim, 0), 0u);
    EXPECT_EQ(victim.size(), 93u);
    EXPECT_EQ(thief.pop_front(), &at(1'000));  // The thief's own fibers come first.
    for (std::size_t i = 93; i < 100; ++i) EXPECT_EQ(thief.pop_front(), &at(i));
}

TEST_F(fiber_ring_test, behaves_as_a_deque_under_random_operations) {
    std::mt19937_64 rng{test_seed()};
    fiber_ring queues[2];
    std::deque<sched::fiber*> models[2];
    std::deque<sched::fiber*> outside;
    for (std::size_t i = 0; i < 4'000; ++i) outside.push_back(&at(i));

    const int steps = scaled(500'000, 100'000);
    for (int step = 0; step < steps; ++step) {
        const bool growing = (step / 10'000) % 2 == 0;
        const auto which = rng() % 2;
        fiber_ring& q = queues[which];
        std::deque<sched::fiber*>& model = models[which];
        const auto dice = rng() % 100;
        if (dice < (growing ? 50u : 20u)) {
            if (outside.empty()) continue;
            sched::fiber* f = outside.front();
            outside.pop_front();
            if (rng() % 4 == 0) {
                q.push_front(*f);
                model.push_front(f);
            } else {
                q.push_back(*f);
                model.push_back(f);
            }
        } else if (dice < 70) {
            sched::fiber* f = q.pop_front();
            ASSERT_EQ(f, model.empty() ? nullptr : model.front());
            if (f == nullptr) continue;
            model.pop_front();
            outside.push_back(f);
        } else if (dice < 99) {
            if (outside.empty()) continue;
            sched::fiber* f = q.rotate(*outside.front());
            ASSERT_EQ(f, model.empty() ? nullptr : model.front());
            if (f == nullptr) continue;
            model.pop_front();
            model.push_back(outside.front());
            outside.pop_front();
            outside.push_back(f);
        } else {
            fiber_ring& victim = queues[1 - which];
            std::deque<sched::fiber*>& from = models[1 - which];
            const auto most = static_cast<std::uint32_t>(rng() % 2 == 0 ? 256 : 4'000);
            const std::uint32_t n = q.take_half(victim, most);
            ASSERT_EQ(n, std::min<std::size_t>((from.size() + 1) / 2, most));
            model.insert(model.end(), from.end() - n, from.end());
            from.erase(from.end() - n, from.end());
        }
        for (int i = 0; i < 2; ++i) {
            ASSERT_EQ(queues[i].size(), models[i].size());
            ASSERT_EQ(queues[i].looks_empty(), models[i].empty());
        }
    }
    for (int i = 0; i < 2; ++i) {
        for (sched::fiber* f : models[i]) ASSERT_EQ(queues[i].pop_front(), f);
        EXPECT_EQ(queues[i].pop_front(), nullptr);
    }
}

}  // namespace
