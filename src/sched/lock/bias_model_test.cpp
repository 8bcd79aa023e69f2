// SPDX-License-Identifier: MIT
//
// The steps of sched/lock/bias with carry/ownership, run under every execution that x86-TSO allows.
#include <iostream>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "internal/exclusion_model.hpp"
#include "os/lock.hpp"
#include "support/scale.hpp"

// The part of os/lock.hpp that sched/lock/bias.hpp uses.
namespace ums::modelled_os {
using os::lock_states;
}  // namespace ums::modelled_os

#define base modelled_base
#define os modelled_os
#define sched modelled
#define carry modelled
#include "carry/ownership.cpp"
#include "carry/ownership.hpp"
#include "sched/lock/bias.hpp"
#undef base
#undef os
#undef sched
#undef carry

namespace {

using ums::modelled::bias_word;
using ums::modelled_base::acquire;
using ums::modelled_base::atomic;
using ums::modelled_base::relaxed;
using ums::modelled_base::release;
using ums::tso::is_exclusion_broken;
using ums::tso::model;

constexpr std::uint32_t is_free = ums::os::lock_states::free, is_held = ums::os::lock_states::held,
                        mine = is_held + 1;

struct program {
    bool asymmetric = true;
    bool without_claim = false;  // The mistake that the test must find.
    int sections = 2;            // How many the fibers of the processor make, one after the other.
    int others = 1;              // Threads that work on another processor, or on none.
    int each = 1;
};

struct shared : ums::tso::guarded_number {
    explicit shared(bool asymmetric) { ownership.reset(asymmetric); }

    ums::modelled::ownership ownership;
    atomic<std::uint32_t> word{mine};

    bool acquire_free() {
        std::uint32_t seen = is_free;
        return word.compare_exchange(seen, is_held, acquire, relaxed);
    }

    // A fiber of the processor. It works inside if the lock is biased; otherwise in the ordinary
    // way, and then it makes the lock biased again.
    bool on_the_processor(bool in_haste) {
        const bool is_hasty = in_haste && ownership.try_enter();
        if (!is_hasty && !ownership.enter()) return false;
        if (bias_word::is_mine(word, mine)) {
            section();
            ownership.leave();
            return true;
        }
        ownership.leave();
        if (!acquire_free()) return false;
        section();
        word.store(mine, release);
        return true;
    }

    // Any other thread.
    bool elsewhere(bool without_claim) {
        if (acquire_free()) {
            section();
            word.store(is_free, release);
            return true;
        }
        const bool is_claimed = without_claim || ownership.try_claim();
        if (!is_claimed) return false;
        const bool is_taken = bias_word::take(word, mine);
        if (!without_claim) ownership.unclaim();
        if (!is_taken) return false;
        section();
        word.store(is_free, release);
        return true;
    }
};

bool has_been_taken;

model::report explore(const program& p, model& m) {
    has_been_taken = false;
    return m.explore([&p](model& of) {
        auto s = std::make_shared<shared>(p.asymmetric);
        of.strand("processor", [s, &p] {
            for (int i = 0; i < p.sections; ++i) static_cast<void>(s->on_the_processor(i % 2 == 0));
        });
        for (int t = 0; t < p.others; ++t)
            of.strand("other " + std::to_string(t), [s, &p] {
                for (int i = 0; i < p.each; ++i)
                    if (s->elsewhere(p.without_claim)) has_been_taken = true;
            });
        of.at_rest([s, &of] { return s->verdict(of); });
    });
}

void is_correct(model& m, const program& p) {
    // Then the heavy fence is only a full fence of the caller's own.
    m.without_heavy_fence = !p.asymmetric;
    const auto r = explore(p, m);
    EXPECT_EQ(r.error, "");
    EXPECT_TRUE(has_been_taken);
    std::cout << r.states << " states, " << r.executions << " executions\n";
}

void is_correct(const program& p) {
    model m;
    is_correct(m, p);
}

// The search goes through the same states, and there is nothing in them for a sanitizer to check.
constexpr bool is_instrumented = under_tsan || under_asan;
constexpr const char* too_long = "a minute, and more, under a sanitizer";

TEST(bias_model_test, who_is_inside_and_who_takes_the_bias_away_exclude_each_other) {
    is_correct({.sections = scaled(3, 2)});
}

TEST(bias_model_test, excludes_without_membarrier) {
    is_correct({.asymmetric = false, .sections = 2});
}

TEST(bias_model_test, excludes_two_that_take_it_away) {
    if (is_instrumented) GTEST_SKIP() << too_long;
    is_correct({.sections = 1, .others = 2});
}

// In C++20's memory, where a load may read an old value.
void is_correct_in_histories(const program& p, unsigned preemptions = 3) {
    model m;
    m.histories = true;
    m.checks_orders = true;
    m.preemptions = preemptions;
    is_correct(m, p);
}

TEST(bias_model_test, excludes_in_histories) {
    if (is_instrumented) GTEST_SKIP() << too_long;
    is_correct_in_histories({.sections = 2});
}

TEST(bias_model_test, excludes_in_histories_without_membarrier) {
    if (is_instrumented) GTEST_SKIP() << too_long;
    is_correct_in_histories({.asymmetric = false, .sections = 2});
}

TEST(bias_model_test, excludes_two_that_take_it_away_in_histories) {
    if (is_instrumented) GTEST_SKIP() << too_long;
    is_correct_in_histories({.sections = 1, .others = 2}, 2);
}

TEST(bias_model_test, the_claim_is_needed) {
    model m;
    const auto r = explore({.without_claim = true}, m);
    EXPECT_TRUE(is_exclusion_broken(r.error)) << r.error;
}

TEST(bias_model_test, the_heavy_fence_is_needed) {
    model m;
    m.without_heavy_fence = true;
    const auto r = explore({}, m);
    EXPECT_TRUE(is_exclusion_broken(r.error)) << r.error;
}

}  // namespace
