// SPDX-License-Identifier: MIT
//
// The text of os/lock in every execution that C++20 allows, up to a bound: it excludes, a section
// sees what the one before it wrote, and no waiter is left asleep.

#include <iostream>
#include <linux/membarrier.h>
#include <map>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "internal/exclusion_model.hpp"
#include "internal/modelled/mutants.hpp"
#include "support/scale.hpp"

namespace ums::modelled_base {

// Named by os::lock_word, which is not in the programs: it is the same lock.
template <class T>
struct atomic_ref {
    explicit atomic_ref(T& word) noexcept;
    T load(std::memory_order) const noexcept;
    void store(T, std::memory_order) noexcept;
    bool compare_exchange(T&, T, std::memory_order, std::memory_order) noexcept;
};

}  // namespace ums::modelled_base

// What the text sees of the rest of os/.
namespace ums::modelled_locks {

using modelled_os::futex_wake;
using modelled_os::nanoseconds;
using modelled_os::never;
using modelled_os::now;
using os::lock_rank;

inline bool futex_wait(const void* word, std::uint32_t expected, nanoseconds limit) noexcept {
    return modelled_os::futex_wait(*static_cast<const modelled_base::atomic<std::uint32_t>*>(word),
                                   expected, limit);
}
inline void begin_no_stop() noexcept {}
inline void end_no_stop() noexcept {}
inline void* thread_slot() noexcept { return nullptr; }

struct kernel {
    bool has_membarrier = true;
    int membarrier(int command) const noexcept {
        if (!has_membarrier) return -EINVAL;
        if (command == MEMBARRIER_CMD_PRIVATE_EXPEDITED) modelled_os::heavy_fence();
        return 0;
    }
};
inline kernel system;

}  // namespace ums::modelled_locks

#pragma push_macro("UMS_DEBUG")
#undef UMS_DEBUG  // Without the check of the locks' ranks, which is each thread's own.
#define base modelled_base
#define os modelled_locks
#include "os/lock.hpp"

#include "os/lock.cpp"
#undef base
#undef os
#pragma pop_macro("UMS_DEBUG")

namespace {

using ums::modelled_locks::lock_states;
using ums::tso::model;

struct program {
    int strands = 2, each = 1;
    bool has_membarrier = true;
    unsigned preemptions = 3;
};

struct machine : ums::tso::guarded_number {
    ums::modelled_locks::lock lock;
    ums::tso::checked<int> written{0};
};

// Lies at one address in every execution, because that chooses the sleepers' count. Not destroyed,
// because its words disappeared with the execution.
machine& remade() {
    alignas(machine) static char room[sizeof(machine)];
    new (&lock_states::counts_) lock_states::place[lock_states::places];
    return *new (room) machine;
}

model::report explore(const program& p, model& m) {
    m.histories = true;
    m.checks_orders = true;
    m.preemptions = p.preemptions;
    m.timeouts = p.has_membarrier ? 0 : 2;
    ums::modelled_locks::system.has_membarrier = p.has_membarrier;
    return m.explore([&p](model& of) {
        machine& s = remade();
        for (int t = 0; t < p.strands; ++t)
            of.strand("strand " + std::to_string(t), [&s, &p] {
                for (int i = 0; i < p.each; ++i) {
                    s.lock.acquire();
                    s.section();
                    s.written = s.written + 1;
                    s.lock.release();
                }
            });
        of.at_rest([&s, &of, &p]() -> std::string {
            for (int t = 0; t < p.strands; ++t)
                if (const auto n = static_cast<std::size_t>(t);
                    !of.is_done(n) && !of.sleeps_for_a_time(n))
                    return "one sleeps for ever";
            return s.verdict(of);
        });
    });
}

void is_correct(const program& p) {
    model m;
    const auto r = explore(p, m);
    EXPECT_EQ(r.error, "");
    std::cout << r.states << " states, " << r.executions << " executions\n";
}

TEST(lock_model_test, excludes_and_leaves_no_waiter_asleep) {
    is_correct({});
    is_correct({.each = 2, .preemptions = 2});
    is_correct({.strands = 3, .preemptions = 2});
}

// Then a waiter looks again every millisecond.
TEST(lock_model_test, leaves_no_waiter_asleep_without_membarrier) {
    is_correct({.has_membarrier = false});
}

TEST(lock_model_test, its_orders_are_needed) {
    std::map<std::string, ums::tso::site> sites;
    {
        model m;
        m.sites = &sites;
        EXPECT_EQ(explore({}, m).error, "");
    }
    EXPECT_EQ(sites.size(), 2u);  // The other accesses are relaxed.
    for (const auto& [key, site] : sites) {
        model m;
        m.weakened = &site;
        m.weakened_to = std::memory_order_relaxed;
        EXPECT_NE(explore({}, m).error, "") << site.name();
    }
}

constexpr ums::tso::replaced_text mutants[] = {
#include "lock_model_test.inc"
};

// The heavy fence is a full one, too. Where it is refused, the sleeper looks again soon.
constexpr std::string_view covered = "a_sleeper_without_its_full_fence";

TEST(lock_model_test, finds_each_mutant) {
    if (under_asan || under_tsan) GTEST_SKIP() << "the search goes through the same states";
    for (const auto& one : mutants) {
        EXPECT_TRUE(one.is_there) << one.name << ": the text that it replaces has changed";
        ums::tso::mutant = static_cast<int>(&one - mutants) + 1;
        std::string found;
        for (const program& p : {program{}, program{.strands = 3, .preemptions = 2},
                                 program{.has_membarrier = false}}) {
            model m;
            if (found.empty()) found = explore(p, m).error;
        }
        EXPECT_EQ(found.empty(), one.name == covered) << one.name;
        std::cout << one.name << ": " << found.substr(0, found.find('\n')) << '\n';
    }
    ums::tso::mutant = 0;
}

}  // namespace
