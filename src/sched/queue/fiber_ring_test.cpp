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
    EXPECT_EQ(q.take_oldest(other, 0, 10), 0u);
    EXPECT_EQ(q.give_turn(), 0u);
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

TEST_F(fiber_ring_test, a_thief_takes_the_half_that_has_waited_longest) {
    for (const std::uint32_t n : {0u, 1u, 2u, 3u, 10u, 511u, 512u, 513u, 3'000u}) {
        fiber_ring victim, thief;
        for (std::size_t i = 0; i < n; ++i) victim.push_back(at(i));
        const std::uint32_t taken = thief.take_oldest(victim, 0, ~0u);
        EXPECT_EQ(taken, (n + 1) / 2);
        EXPECT_EQ(thief.size(), taken);
        EXPECT_EQ(victim.size(), n - taken);
        for (std::size_t i = 0; i < taken; ++i) ASSERT_EQ(thief.pop_front(), &at(i));
        for (std::size_t i = taken; i < n; ++i) ASSERT_EQ(victim.pop_front(), &at(i));
    }
}

TEST_F(fiber_ring_test, a_thief_takes_no_more_than_it_may) {
    fiber_ring victim, thief;
    for (std::size_t i = 0; i < 100; ++i) victim.push_back(at(i));
    thief.push_back(at(1'000));
    EXPECT_EQ(thief.take_oldest(victim, 0, 7), 7u);
    EXPECT_EQ(thief.take_oldest(victim, 0, 0), 0u);
    EXPECT_EQ(victim.size(), 93u);
    EXPECT_EQ(thief.pop_front(), &at(1'000));  // The thief's own fibers come first.
    for (std::size_t i = 0; i < 7; ++i) EXPECT_EQ(thief.pop_front(), &at(i));
}

// A walk: each of `levels` creators has called the next; the first one waits longest.
TEST_F(fiber_ring_test, a_thief_takes_the_oldest_creator) {
    fiber_ring victim, thief;
    constexpr std::size_t levels = 40;
    for (std::size_t i = 0; i < levels; ++i) {
        at(i).spawner = i;
        victim.push_in_front(at(i));
    }
    for (std::size_t i = 0; i + 1 < levels; ++i) {
        EXPECT_EQ(thief.take_oldest(victim, 0, ~0u), 1u);
        EXPECT_EQ(thief.in_front(), 1u);
        EXPECT_EQ(thief.pop_front(), &at(i));
    }
    EXPECT_EQ(victim.in_front(), 1u);
}

TEST_F(fiber_ring_test, a_thief_takes_the_oldest_children_of_one_creator) {
    fiber_ring victim, thief;
    for (std::size_t i = 0; i < 30; ++i) {
        at(i).spawner = i / 10;  // Ten of each; those of 0 are the oldest.
        victim.push_in_front(at(i));
    }
    const std::uint32_t n = thief.take_oldest(victim, 0, ~0u);
    EXPECT_GE(n, 4u);
    EXPECT_LE(n, 10u);
    EXPECT_EQ(thief.in_front(), n);
    EXPECT_EQ(thief.pop_front(), &at(0));  // The oldest of all is the largest.
    for (std::size_t i = n; --i != 0;) EXPECT_EQ(thief.pop_front(), &at(i));
    for (std::size_t i = 30; i-- != n;) EXPECT_EQ(victim.pop_front(), &at(i));
}

TEST_F(fiber_ring_test, a_thief_takes_of_both_parts) {
    for (const std::size_t others : {1u, 6u, 300u}) {
        for (const std::size_t levels : {1u, 5u, 200u}) {
            fiber_ring victim, thief;
            for (std::size_t i = 0; i < others; ++i) victim.push_back(at(i));
            for (std::size_t i = 0; i < levels; ++i) {
                at(1'000 + i).spawner = i;
                victim.push_in_front(at(1'000 + i));
            }
            const std::uint32_t half = static_cast<std::uint32_t>(others + 1) / 2;
            EXPECT_EQ(thief.take_oldest(victim, 0, ~0u), 1 + half);
            EXPECT_EQ(thief.pop_front(), &at(1'000));
            for (std::size_t i = 0; i < half; ++i) EXPECT_EQ(thief.pop_front(), &at(i));
            EXPECT_EQ(victim.in_front(), levels - 1);
            for (std::size_t i = levels; --i != 0;) EXPECT_EQ(victim.pop_front(), &at(1'000 + i));
            for (std::size_t i = half; i < others; ++i) EXPECT_EQ(victim.pop_front(), &at(i));
        }
    }
}

TEST_F(fiber_ring_test, what_the_owner_has_just_made_is_not_taken_beside_a_walk) {
    fiber_ring victim, thief;
    victim.push_in_front(at(100));
    for (std::size_t i = 0; i < 4; ++i) victim.push_back(at(i));
    EXPECT_EQ(thief.take_oldest(victim, 3, ~0u), 2u);
    EXPECT_EQ(thief.pop_front(), &at(100));
    EXPECT_EQ(thief.pop_front(), &at(0));
    EXPECT_EQ(thief.take_oldest(victim, 3, ~0u), 2u);  // There is no walk any more.
}

TEST_F(fiber_ring_test, what_is_brought_to_the_front_comes_out_newest_first) {
    for (const std::size_t others : {0u, 3u, 600u}) {
        for (const std::uint32_t n : {0u, 1u, 2u, 7u, 500u}) {
            fiber_ring q;
            for (std::size_t i = 0; i < others; ++i) q.push_back(at(i));
            for (std::size_t i = 0; i < n; ++i) q.push_back(at(1'000 + i));
            q.bring_to_front(n);
            EXPECT_EQ(q.in_front(), n);
            for (std::size_t i = n; i-- != 0;) ASSERT_EQ(q.pop_front(), &at(1'000 + i));
            for (std::size_t i = 0; i < others; ++i) ASSERT_EQ(q.pop_front(), &at(i));
        }
    }
}

TEST_F(fiber_ring_test, the_others_have_a_turn_before_the_front_part) {
    for (const std::size_t others : {1u, 10u, 64u, 65u, 500u}) {
        for (const std::size_t levels : {1u, 64u, 700u}) {
            fiber_ring q;
            for (std::size_t i = 0; i < others; ++i) q.push_back(at(i));
            for (std::size_t i = 0; i < levels; ++i) q.push_in_front(at(1'000 + i));
            for (std::size_t turn = 0; turn < others + 3; ++turn) {
                EXPECT_EQ(q.give_turn(), std::min(others, levels));
                EXPECT_EQ(q.in_front(), levels + 1);
                ASSERT_EQ(q.pop_front(), &at(turn % others));
                q.push_back(at(turn % others));  // It yields.
            }
            EXPECT_EQ(q.in_front(), levels);
            for (std::size_t i = levels; i-- != 0;) ASSERT_EQ(q.pop_front(), &at(1'000 + i));
            for (std::size_t i = 0; i < others; ++i)
                ASSERT_EQ(q.pop_front(), &at((i + 3) % others));
        }
    }
}

TEST_F(fiber_ring_test, the_oldest_new_one_leaves_the_front_part) {
    for (const std::size_t creators : {0u, 1u, 5u}) {  // Older than all that are new.
        fiber_ring q;
        q.push_back(at(0));
        EXPECT_FALSE(q.let_oldest_new_go());
        for (std::size_t i = 0; i < 10; ++i) {
            at(1 + i).is_new.set(i >= creators);
            q.push_in_front(at(1 + i));
        }
        EXPECT_TRUE(q.let_oldest_new_go());
        EXPECT_EQ(q.in_front(), 9u);
        for (std::size_t i = 10; i-- != 0;) {
            if (i != creators) {
                ASSERT_EQ(q.pop_front(), &at(1 + i));
            }
            at(1 + i).is_new.set(false);
        }
        EXPECT_FALSE(q.let_oldest_new_go());
        ASSERT_EQ(q.pop_front(), &at(1 + creators));
        ASSERT_EQ(q.pop_front(), &at(0));
    }
}

TEST_F(fiber_ring_test, behaves_as_a_deque_under_random_operations) {
    std::mt19937_64 rng{test_seed()};
    fiber_ring queues[2];
    std::deque<sched::fiber*> models[2];
    std::size_t fronts[2] = {};  // How many of the model's first are its front part.
    std::deque<sched::fiber*> outside;
    for (std::size_t i = 0; i < 4'000; ++i) {
        outside.push_back(&at(i));
        at(i).spawner = i;
    }

    const int steps = scaled(500'000, 100'000);
    for (int step = 0; step < steps; ++step) {
        const bool growing = (step / 10'000) % 2 == 0;
        const auto which = rng() % 2;
        fiber_ring& q = queues[which];
        std::deque<sched::fiber*>& model = models[which];
        std::size_t& front = fronts[which];
        const auto dice = rng() % 100;
        if (dice < (growing ? 50u : 20u)) {
            if (outside.empty()) continue;
            sched::fiber* f = outside.front();
            outside.pop_front();
            const auto where = rng() % 8;
            if (where == 0) {
                q.push_front(*f);
                model.push_front(f);
                front += front != 0;
            } else if (where == 1) {
                q.push_in_front(*f);
                model.push_front(f);
                ++front;
            } else {
                q.push_back(*f);
                model.push_back(f);
            }
        } else if (dice < 70) {
            sched::fiber* f = q.pop_front();
            ASSERT_EQ(f, model.empty() ? nullptr : model.front());
            if (f == nullptr) continue;
            model.pop_front();
            front -= front != 0;
            outside.push_back(f);
        } else if (dice < 97) {
            if (outside.empty()) continue;
            sched::fiber* f = q.rotate(*outside.front());
            ASSERT_EQ(f, model.empty() ? nullptr : model.front());
            if (f == nullptr) continue;
            model.pop_front();
            front -= front != 0;
            model.push_back(outside.front());
            outside.pop_front();
            outside.push_back(f);
        } else if (dice == 97) {
            const std::size_t n = rng() % (model.size() - front + 1);
            q.bring_to_front(static_cast<std::uint32_t>(n));
            for (std::size_t i = 0; i < n; ++i) {
                sched::fiber* const f = model[model.size() - n + i];
                model.erase(model.end() - static_cast<std::ptrdiff_t>(n - i));
                model.push_front(f);
            }
            front += n;
        } else if (dice == 98) {
            q.give_turn();
            if (front == 0 || model.size() == front) continue;
            const auto first = model.begin() + static_cast<std::ptrdiff_t>(front);
            std::rotate(model.begin(), first, first + 1);
            ++front;
        } else {
            fiber_ring& victim = queues[1 - which];
            std::deque<sched::fiber*>& from = models[1 - which];
            const auto most = static_cast<std::uint32_t>(rng() % 2 == 0 ? 256 : 4'000);
            const auto kept = static_cast<std::uint32_t>(rng() % 3);
            std::size_t& its_front = fronts[1 - which];
            const std::size_t others = from.size() - its_front;
            const std::size_t creators = its_front != 0 ? 1 : 0;  // No two have the same spawner.
            const std::size_t eligible =
                creators == 0 ? others : others - std::min<std::size_t>(kept, others);
            const std::size_t n =
                creators + std::min<std::size_t>((eligible + 1) / 2, most - creators);
            ASSERT_EQ(q.take_oldest(victim, kept, most), n);
            const auto first = from.begin() + static_cast<std::ptrdiff_t>(its_front - creators);
            if (model.empty()) front = creators;
            model.insert(model.end(), first, first + static_cast<std::ptrdiff_t>(n));
            from.erase(first, first + static_cast<std::ptrdiff_t>(n));
            its_front -= creators;
        }
        for (int i = 0; i < 2; ++i) {
            ASSERT_EQ(queues[i].size(), models[i].size());
            ASSERT_EQ(queues[i].looks_empty(), models[i].empty());
            ASSERT_EQ(queues[i].in_front(), fronts[i]);
        }
    }
    for (int i = 0; i < 2; ++i) {
        for (sched::fiber* f : models[i]) ASSERT_EQ(queues[i].pop_front(), f);
        EXPECT_EQ(queues[i].pop_front(), nullptr);
    }
}

}  // namespace
