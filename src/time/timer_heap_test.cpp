// SPDX-License-Identifier: MIT
#include "time/timer_heap.hpp"

#include <algorithm>
#include <csignal>
#include <deque>
#include <map>
#include <random>
#include <vector>

#include "internal/failing_calls.hpp"
#include "support/child.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"

namespace {

using namespace ums;
using os::failing_calls;
using os::nanoseconds;
using timers::timer;
using timers::timer_heap;

TEST(timer_heap, an_empty_one_has_no_deadline) {
    timer_heap heap;
    EXPECT_TRUE(heap.empty());
    EXPECT_EQ(heap.size(), 0u);
    EXPECT_EQ(heap.next(), os::never);
    EXPECT_EQ(heap.pop_expired(os::never), nullptr);
}

TEST(timer_heap, a_timer_expires_at_its_deadline_and_not_before) {
    timer_heap heap;
    timer t;
    t.at = 100;
    EXPECT_FALSE(t.is_queued());
    heap.add(t);
    EXPECT_TRUE(t.is_queued());
    EXPECT_EQ(heap.next(), 100);
    EXPECT_EQ(heap.pop_expired(99), nullptr);
    EXPECT_EQ(heap.pop_expired(100), &t);
    EXPECT_FALSE(t.is_queued());
    EXPECT_TRUE(heap.empty());
}

TEST(timer_heap, deadlines_may_be_negative_zero_and_the_last) {
    timer_heap heap;
    timer t[3];
    const nanoseconds at[] = {os::never, -5, 0};
    for (int i = 0; i < 3; ++i) {
        t[i].at = at[i];
        heap.add(t[i]);
    }
    EXPECT_EQ(heap.pop_expired(0), &t[1]);
    EXPECT_EQ(heap.pop_expired(0), &t[2]);
    EXPECT_EQ(heap.pop_expired(os::never - 1), nullptr);
    EXPECT_EQ(heap.pop_expired(os::never), &t[0]);
}

TEST(timer_heap, timers_come_out_in_order) {
    std::mt19937_64 rng{test_seed()};
    std::vector<timer> all(static_cast<std::size_t>(scaled(200'000, 20'000)));
    timer_heap heap;
    for (timer& t : all) {
        t.at = static_cast<nanoseconds>(rng() % 100'000);
        heap.add(t);
    }
    EXPECT_EQ(heap.size(), all.size());
    nanoseconds last = -1;
    std::size_t n = 0;
    for (; timer* t = heap.pop_expired(os::never); ++n) {
        ASSERT_GE(t->at, last);
        last = t->at;
    }
    EXPECT_EQ(n, all.size());
}

TEST(timer_heap, a_timer_can_be_removed_from_every_place) {
    for (std::size_t n = 1; n <= 70; ++n) {
        for (std::size_t removed = 0; removed < n; ++removed) {
            timer_heap heap;
            std::vector<timer> all(n);
            for (std::size_t i = 0; i < n; ++i) {
                all[i].at = static_cast<nanoseconds>(i * 7 % n);
                heap.add(all[i]);
            }
            heap.remove(all[removed]);
            ASSERT_FALSE(all[removed].is_queued());
            std::size_t left = 0;
            for (nanoseconds last = -1; timer* t = heap.pop_expired(os::never); ++left) {
                ASSERT_NE(t, &all[removed]);
                ASSERT_GE(t->at, last);
                last = t->at;
            }
            ASSERT_EQ(left, n - 1);
        }
    }
}

TEST(timer_heap, behaves_as_a_multimap_under_random_operations) {
    std::mt19937_64 rng{test_seed()};
    timer_heap heap;
    std::multimap<nanoseconds, timer*> model;
    std::deque<timer> pool(5'000);
    std::vector<timer*> idle;
    for (timer& t : pool) idle.push_back(&t);

    const int steps = scaled(500'000, 60'000);
    nanoseconds now = 0;
    for (int step = 0; step < steps; ++step) {
        const bool growing = (step / 10'000) % 2 == 0;
        // In some phases there are few different deadlines, so many are equal.
        const std::uint64_t spread = (step / 5'000) % 3 == 0 ? 10 : 1'000'000;
        const auto dice = rng() % 100;
        if (dice < (growing ? 70u : 35u) && !idle.empty()) {
            timer* t = idle.back();
            idle.pop_back();
            t->at = now + static_cast<nanoseconds>(rng() % spread) - 5;
            heap.add(*t);
            model.emplace(t->at, t);
        } else if (dice < 90 && !model.empty()) {
            // Any timer that is queued.
            timer* t = &pool[rng() % pool.size()];
            if (!t->is_queued())
                t = std::next(model.begin(),
                              static_cast<long>(rng() % std::min<std::size_t>(model.size(), 8)))
                        ->second;
            auto [first, last] = model.equal_range(t->at);
            const auto found = std::find_if(first, last, [t](auto& e) { return e.second == t; });
            ASSERT_NE(found, last);
            model.erase(found);
            heap.remove(*t);
            idle.push_back(t);
        } else {
            now += static_cast<nanoseconds>(rng() % 1'000);
            while (timer* t = heap.pop_expired(now)) {
                ASSERT_FALSE(model.empty());
                ASSERT_EQ(t->at, model.begin()->first);
                auto [first, last] = model.equal_range(t->at);
                const auto found =
                    std::find_if(first, last, [t](auto& e) { return e.second == t; });
                ASSERT_NE(found, last);
                model.erase(found);
                ASSERT_FALSE(t->is_queued());
                idle.push_back(t);
            }
            ASSERT_TRUE(model.empty() || model.begin()->first > now);
        }
        ASSERT_EQ(heap.size(), model.size());
        ASSERT_EQ(heap.empty(), model.empty());
        ASSERT_EQ(heap.next(), model.empty() ? os::never : model.begin()->first);
    }
}

TEST(timer_heap, gives_its_memory_back_when_the_last_timer_leaves) {
    failing_calls calls;
    {
        timer_heap heap;
        std::vector<timer> all(10'000);
        for (timer& t : all) heap.add(t);
        EXPECT_GE(calls.mapped_bytes(), 160'000);
        for (timer& t : all) heap.remove(t);
        EXPECT_LE(calls.mapped_bytes(), 4'096);
        heap.add(all[0]);
        EXPECT_EQ(heap.pop_expired(os::never), &all[0]);
    }
    EXPECT_EQ(calls.mapped_bytes(), 0);
}

const child_program removes_a_stranger{"removes_a_stranger", [](const child_arguments& a) {
                                           timer_heap heap, other;
                                           timer in, out;
                                           heap.add(in);
                                           if (a.at(0) == "queued elsewhere") other.add(out);
                                           if (a.at(0) == "removed before") {
                                               heap.add(out);
                                               heap.remove(out);
                                           }
                                           heap.remove(out);
                                           return 0;
                                       }};

TEST(timer_heap, removing_a_timer_it_does_not_hold_is_an_error) {
    for (const char* how : {"never queued", "queued elsewhere", "removed before"}) {
        const child_end end = run_child("removes_a_stranger", {how});
        EXPECT_EQ(end.signal, SIGABRT) << how << ": " << end;
        EXPECT_EQ(end.err.find("ums: a timer was removed from a heap that does not hold it"), 0u)
            << how << ": " << end;
    }
}

}  // namespace
