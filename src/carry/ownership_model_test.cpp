// SPDX-License-Identifier: MIT
//
// The text of carry/ownership, run under every execution that x86-TSO allows.
#include <iostream>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "internal/exclusion_model.hpp"
#include "support/scale.hpp"

#define base modelled_base
#define os modelled_os
#define carry modelled
#include "carry/ownership.hpp"
// Includes their functions, too:
#include "carry/ownership.cpp"
#undef base
#undef os
#undef carry

namespace {

using ums::tso::is_exclusion_broken;
using ums::tso::model;

struct program {
    bool asymmetric = true;
    int holder_sections = 2;
    int thieves = 1;
    int thefts = 1;  // Of each.
    // A thread takes the processor itself away, and works on it as its new holder.
    bool takes = false;
};

// What holder and thieves share: the lock, and a number that only the lock protects.
struct shared : ums::tso::guarded_number {
    explicit shared(bool asymmetric) { ownership.reset(asymmetric); }

    ums::modelled::ownership ownership;
};

// Shows that the search has been where it should: a thief got in at least once.
bool has_thief_been_inside;
bool has_processor_been_taken;

model::report explore(const program& p, model& m) {
    has_thief_been_inside = false;
    return m.explore([&p](model& of) {
        auto s = std::make_shared<shared>(p.asymmetric);
        of.strand("holder", [s, &of, &p] {
            for (int i = 0; i < p.holder_sections; ++i) {
                of.forget(static_cast<model::value>(i));
                const bool is_hasty = i % 2 == 0 && s->ownership.try_enter();
                if (!is_hasty && !s->ownership.enter()) return;
                s->section();
                s->ownership.leave();
            }
        });
        for (int t = 0; t < p.thieves; ++t)
            of.strand("thief " + std::to_string(t), [s, &of, &p] {
                for (int i = 0; i < p.thefts; ++i) {
                    of.forget(static_cast<model::value>(i));
                    if (!s->ownership.try_claim()) continue;
                    has_thief_been_inside = true;
                    s->section();
                    s->ownership.unclaim();
                }
            });
        if (p.takes)
            of.strand("taker", [s] {
                if (!s->ownership.try_claim()) return;
                has_processor_been_taken = true;
                s->ownership.vacate();
                s->ownership.unclaim();
                s->section();
            });
        of.at_rest([s, &of, &p]() -> std::string {
            const model::value sections = of.at(s->sections);
            if (!p.takes && sections < static_cast<model::value>(p.holder_sections))
                return "the holder never got in";
            return s->verdict(of);
        });
    });
}

void is_correct(model& m, const program& p) {
    // Then the heavy fence is only a full fence of the caller's own.
    m.without_heavy_fence = !p.asymmetric;
    const auto r = explore(p, m);
    EXPECT_EQ(r.error, "");
    EXPECT_TRUE(has_thief_been_inside);
    std::cout << r.states << " states, " << r.executions << " executions\n";
}

void is_correct(const program& p) {
    model m;
    is_correct(m, p);
}

// The search goes through the same states, and there is nothing in them for a sanitizer to check.
constexpr bool is_instrumented = under_tsan || under_asan;
constexpr const char* too_long = "a minute, and more, under a sanitizer";

TEST(ownership_model_test, excludes_and_does_not_deadlock) {
    is_correct({.holder_sections = 3, .thieves = 1, .thefts = scaled(2, 1)});
}

TEST(ownership_model_test, excludes_without_membarrier) {
    is_correct({.asymmetric = false, .holder_sections = 3, .thieves = 1, .thefts = scaled(2, 1)});
}

TEST(ownership_model_test, excludes_two_thieves) {
    if (is_instrumented) GTEST_SKIP() << too_long;
    is_correct({.holder_sections = 2, .thieves = 2, .thefts = 1});
}

TEST(ownership_model_test, excludes_two_thieves_without_membarrier) {
    if (is_instrumented) GTEST_SKIP() << too_long;
    is_correct({.asymmetric = false, .holder_sections = 2, .thieves = 2, .thefts = 1});
}

TEST(ownership_model_test, excludes_a_carrier_whose_processor_was_taken) {
    if (is_instrumented) GTEST_SKIP() << too_long;
    has_processor_been_taken = false;
    is_correct({.holder_sections = 2, .thieves = 1, .thefts = 1, .takes = true});
    EXPECT_TRUE(has_processor_been_taken);
}

TEST(ownership_model_test, excludes_a_carrier_whose_processor_was_taken_without_membarrier) {
    if (is_instrumented) GTEST_SKIP() << too_long;
    is_correct(
        {.asymmetric = false, .holder_sections = 2, .thieves = 1, .thefts = 1, .takes = true});
}

// Shows that the search would find a mistake: takes away what the proof rests on.
TEST(ownership_model_test, the_heavy_fence_is_needed) {
    model m;
    m.without_heavy_fence = true;
    const auto r = explore({}, m);
    EXPECT_TRUE(is_exclusion_broken(r.error)) << r.error;
}

TEST(ownership_model_test, the_holders_full_fence_is_needed_without_membarrier) {
    model m;
    m.without_heavy_fence = true;
    m.without_full_fence = true;
    const auto r = explore({.asymmetric = false}, m);
    EXPECT_TRUE(is_exclusion_broken(r.error)) << r.error;
}

TEST(ownership_model_test, the_holders_full_fence_is_needed_while_a_thief_asks) {
    model m;
    m.without_full_fence = true;
    const auto r = explore({}, m);
    EXPECT_TRUE(is_exclusion_broken(r.error)) << r.error;
}

// In C++20's memory, where a load may read an old value.
void is_correct_in_histories(const program& p, unsigned preemptions) {
    model m;
    m.histories = true;
    m.checks_orders = true;
    m.preemptions = preemptions;
    is_correct(m, p);
}

TEST(ownership_model_test, excludes_in_histories) {
    if (is_instrumented) GTEST_SKIP() << too_long;
    is_correct_in_histories({.holder_sections = 2, .thieves = 1, .thefts = 1}, 3);
}

TEST(ownership_model_test, excludes_in_histories_without_membarrier) {
    if (is_instrumented) GTEST_SKIP() << too_long;
    is_correct_in_histories({.asymmetric = false, .holder_sections = 2, .thieves = 1, .thefts = 1},
                            3);
}

TEST(ownership_model_test, excludes_two_thieves_in_histories) {
    if (is_instrumented) GTEST_SKIP() << too_long;
    is_correct_in_histories({.holder_sections = 1, .thieves = 2, .thefts = 1}, 3);
}

}  // namespace
