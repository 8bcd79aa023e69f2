// SPDX-License-Identifier: MIT
#include "mem/stack_depot.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "arch/sanitizer.hpp"
#include "internal/failing_calls.hpp"
#include "internal/probe.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"

namespace {

using namespace ums;
using mem::guard_kind;
using mem::stack_depot;
using mem::stack_head;
using os::failing_calls;
using os::page_bytes;

constexpr std::size_t kib = 1024;

// Runs with each kind of guard. Everything the depot maps must be given back by clear().
class stack_depot_test : public ::testing::TestWithParam<guard_kind> {
protected:
    void SetUp() override {
        if (GetParam() == guard_kind::lightweight && !mem::has_lightweight_guards())
            GTEST_SKIP() << "the kernel has no MADV_GUARD_INSTALL";
        configure({});
    }
    ~stack_depot_test() override {
        depot.clear();
        EXPECT_EQ(calls.mapped_bytes(), 0);
        EXPECT_EQ(mem::slab_list.load(base::acquire), nullptr);
    }

    void configure(mem::depot_options options) {
        options.guard = GetParam();
        depot.configure(options);
    }

    // Takes as many as the depot gives, up to `wanted`.
    std::vector<stack_head*> take(std::uint32_t size_class, std::uint32_t wanted) {
        stack_head* list = nullptr;
        const std::uint32_t n = depot.take(size_class, wanted, list);
        std::vector<stack_head*> taken;
        for (stack_head* h = list; h != nullptr; h = h->next_free) taken.push_back(h);
        EXPECT_EQ(taken.size(), n);
        return taken;
    }
    void give(const std::vector<stack_head*>& heads) {
        stack_head* list = nullptr;
        for (stack_head* h : heads) {
            h->next_free = list;
            list = h;
        }
        depot.give(list);
    }

    // Every stack that ever existed is in use or free.
    void expect_none_lost(std::size_t in_use) {
        const mem::depot_stats s = depot.stats();
        EXPECT_EQ(s.carved, in_use + s.warm + s.cold);
    }

    static const char* refused_call() {
        return GetParam() == guard_kind::lightweight ? "madvise" : "mprotect";
    }
    static failing_calls::call guard_call() {
        return GetParam() == guard_kind::lightweight ? failing_calls::madvise
                                                     : failing_calls::mprotect;
    }

    // Makes guards fail from the nth on. Several guards are then installed one by one, so that each
    // can fail.
    void refuse_guards(std::uint64_t nth, std::uint64_t times = ~std::uint64_t{0}) {
        calls.fail(failing_calls::madvise_many, 1);
        calls.fail(guard_call(), nth, times);
    }

    failing_calls calls;
    stack_depot depot;
};

INSTANTIATE_TEST_SUITE_P(guards, stack_depot_test,
                         ::testing::Values(guard_kind::lightweight, guard_kind::mprotect),
                         [](const auto& kind) { return mem::name_of(kind.param); });

TEST(stack_depot, a_size_class_is_the_least_power_of_two_that_holds_the_bytes) {
    EXPECT_EQ(stack_depot::class_of(0), 0u);
    EXPECT_EQ(stack_depot::class_of(1), 0u);
    for (std::uint32_t c = 0; c <= 16; ++c) {
        const std::size_t bytes = stack_depot::bytes_of(c);
        EXPECT_EQ(bytes, 16 * kib << c);
        EXPECT_EQ(stack_depot::class_of(bytes), c);
        EXPECT_EQ(stack_depot::class_of(bytes - 1), c);
        EXPECT_EQ(stack_depot::class_of(bytes / 2 + 1), c);
        if (c < 16) {
            EXPECT_EQ(stack_depot::class_of(bytes + 1), c + 1);
        }
    }
    EXPECT_EQ(stack_depot::bytes_of(16), stack_depot::max_bytes);
    EXPECT_EQ(stack_depot::class_of(stack_depot::max_bytes + 1), 16u);
}

TEST_P(stack_depot_test, gives_stacks_of_the_size_with_a_guard_below) {
    for (const std::uint32_t size_class : {0u, 2u, 6u}) {
        const auto taken = take(size_class, 5);
        ASSERT_EQ(taken.size(), 5u);
        for (stack_head* h : taken) {
            EXPECT_EQ(h->usable_bytes(), stack_depot::bytes_of(size_class));
            char* const bottom = h->bottom();
            EXPECT_FALSE(mem::is_readable(bottom - 1));
            EXPECT_FALSE(mem::is_readable(bottom - stack_depot::guard_bytes));
            *bottom = 'x';  // The lowest byte can be used.
            EXPECT_EQ(h, h->home->head(h->index));
        }
        give(taken);
    }
    expect_none_lost(0);
}

TEST_P(stack_depot_test, the_largest_class_works) {
    const auto taken = take(16, 1);
    ASSERT_EQ(taken.size(), 1u);
    *taken[0]->bottom() = 'x';
    EXPECT_EQ(taken[0]->usable_bytes(), stack_depot::max_bytes);
    give(taken);
}

TEST_P(stack_depot_test, a_stack_that_was_given_back_last_is_taken_first) {
    const auto taken = take(2, 3);
    ASSERT_EQ(taken.size(), 3u);
    give({taken[1]});
    give({taken[0]});
    // The front of the list was given back last.
    EXPECT_EQ(take(2, 2), (std::vector{taken[1], taken[0]}));
    EXPECT_EQ(depot.stats().carved, 3u);
    give(taken);
}

TEST_P(stack_depot_test, a_stack_that_comes_back_twice_or_damaged_ends_the_program) {
    const auto taken = take(2, 1);
    ASSERT_EQ(taken.size(), 1u);
    EXPECT_DEATH(
        {
            give(taken);
            give(taken);
        },
        "a stack was given back twice");
    EXPECT_DEATH(
        {
            taken[0]->index = 1'000'000;
            give(taken);
        },
        "the head of a stack was overwritten");
    give(taken);
}

TEST_P(stack_depot_test, trimming_takes_the_memory_of_the_free_stacks_only) {
    const auto taken = take(2, 16);
    ASSERT_EQ(taken.size(), 16u);
    std::vector<char*> low;
    for (stack_head* h : taken) {
        low.push_back(h->bottom() + 8 * kib);
        *low.back() = 'x';
    }
    std::vector<stack_head*> freed(taken.begin(), taken.begin() + 10);
    const std::vector<stack_head*> kept(taken.begin() + 10, taken.end());
    give(freed);
    EXPECT_EQ(depot.stats().warm, 10u);
    depot.trim();
    EXPECT_EQ(depot.stats().warm, 0u);
    EXPECT_EQ(depot.stats().cold, 10u);
    EXPECT_EQ(depot.stats().trimmed, 10u);
    for (std::size_t i = 0; i < 16; ++i) {
        EXPECT_EQ(mem::is_resident(low[i]), i >= 10);
        EXPECT_EQ(mem::is_resident(taken[i]), i >= 10);
    }
    // Guards survive, and a cold stack is as good as new.
    auto again = take(2, 10);
    ASSERT_EQ(again.size(), 10u);
    EXPECT_EQ(depot.stats().carved, 16u);
    EXPECT_EQ(depot.stats().cold, 0u);
    std::sort(again.begin(), again.end());
    std::sort(freed.begin(), freed.end());
    EXPECT_EQ(again, freed);
    for (stack_head* h : again) {
        EXPECT_EQ(h, h->home->head(h->index));
        EXPECT_FALSE(mem::is_readable(h->bottom() - 1));
        EXPECT_EQ(h->bottom()[8 * kib], 0);
    }
    for (std::size_t i = 10; i < 16; ++i) EXPECT_EQ(*low[i], 'x');
    give(again);
    give(kept);
    expect_none_lost(0);
}

TEST_P(stack_depot_test, beyond_the_warm_limit_a_slab_that_is_wholly_free_loses_its_memory) {
    configure({.warm_limit = 24});
    // The first slab and the second have 16 stacks each, the third has 32.
    const auto taken = take(2, 64);
    ASSERT_EQ(taken.size(), 64u);
    ASSERT_EQ(depot.stats().slabs, 3u);
    std::map<mem::slab*, std::vector<stack_head*>> by_slab;
    for (stack_head* h : taken) by_slab[h->home].push_back(h);
    // One stack of each slab stays in use, so no slab's memory can be given back as a whole.
    std::vector<stack_head*> last;
    for (auto& [s, heads] : by_slab) {
        last.push_back(heads.back());
        heads.pop_back();
        give(heads);
    }
    EXPECT_EQ(depot.stats().warm, 61u);
    EXPECT_EQ(depot.stats().cold, 0u);
    const std::uint64_t before = calls.made(failing_calls::madvise);
    // The page with its head is given back, too.
    const std::size_t whole = by_slab[last[0]->home].size() + 1;
    give({last[0]});
    EXPECT_EQ(depot.stats().cold, whole);
    EXPECT_EQ(depot.stats().warm, 62 - whole);
    // The slab's memory is given back in one system call.
    EXPECT_EQ(calls.made(failing_calls::madvise), before + 1);
    give({last[1]});
    give({last[2]});
    expect_none_lost(0);
    EXPECT_LE(depot.stats().warm, 32u);
}

TEST_P(stack_depot_test, up_to_the_warm_limit_nothing_is_given_back) {
    configure({.warm_limit = 64});
    const auto taken = take(2, 64);
    const std::uint64_t before = calls.made(failing_calls::madvise);
    give(taken);
    EXPECT_EQ(calls.made(failing_calls::madvise), before);
    EXPECT_EQ(depot.stats().warm, 64u);
}

TEST_P(stack_depot_test, slabs_grow_with_the_number_of_stacks) {
    const std::size_t n = GetParam() == guard_kind::lightweight ? 20'000 : 5'000;
    const auto taken = take(0, static_cast<std::uint32_t>(n));
    EXPECT_EQ(taken.size(), n);
    EXPECT_LE(depot.stats().slabs, 20u);
    EXPECT_EQ(std::set<stack_head*>(taken.begin(), taken.end()).size(), n);
    give(taken);
    EXPECT_EQ(depot.stats().warm + depot.stats().cold, n);
}

TEST_P(stack_depot_test, clear_forgets_everything) {
    give(take(2, 100));
    take(5, 3);
    depot.clear();
    const mem::depot_stats s = depot.stats();
    EXPECT_EQ(s.slabs + s.carved + s.warm + s.cold + s.trimmed + s.mapped_bytes, 0u);
    EXPECT_EQ(calls.mapped_bytes(), 0);
    configure({.default_bytes = 100 * kib, .head_bytes = 512});
    EXPECT_EQ(depot.default_class(), 3u);
    const auto taken = take(depot.default_class(), 1);
    ASSERT_EQ(taken.size(), 1u);
    EXPECT_EQ(taken[0]->usable_bytes(), 128 * kib);
    EXPECT_EQ(depot.stats().slabs, 1u);
}

// Every stack in use is filled with its own number, so that a write by another would be noticed.
TEST_P(stack_depot_test, keeps_its_books_under_random_operations) {
    std::mt19937_64 rng{test_seed()};
    configure({.warm_limit = 100});
    struct used {
        stack_head* head;
        std::uint64_t number;
    };
    std::vector<used> in_use;
    std::uint64_t numbers = 0;
    auto words = [](stack_head* h) { return reinterpret_cast<std::uint64_t*>(h->bottom()); };
    auto check = [&](const used& u) {
        const std::size_t n =
            static_cast<std::size_t>(reinterpret_cast<char*>(u.head) - u.head->bottom()) / 8;
        ASSERT_EQ(words(u.head)[0], u.number);
        ASSERT_EQ(words(u.head)[n / 2], u.number);
        ASSERT_EQ(words(u.head)[n - 1], u.number);
        ASSERT_EQ(u.head, u.head->home->head(u.head->index));
    };
    const int steps = scaled(20'000, 4'000);
    for (int step = 0; step < steps; ++step) {
        const bool growing = (step / 500) % 2 == 0;
        const auto dice = rng() % 100;
        if (dice < (growing ? 60 : 30)) {
            const auto size_class = static_cast<std::uint32_t>(rng() % 4);
            const auto taken = take(size_class, static_cast<std::uint32_t>(rng() % 20));
            for (stack_head* h : taken) {
                ASSERT_EQ(h->usable_bytes(), stack_depot::bytes_of(size_class));
                const std::size_t n =
                    static_cast<std::size_t>(reinterpret_cast<char*>(h) - h->bottom()) / 8;
                ++numbers;
                words(h)[0] = words(h)[n / 2] = words(h)[n - 1] = numbers;
                in_use.push_back({h, numbers});
            }
        } else if (dice < 99) {
            std::vector<stack_head*> back;
            for (auto n = rng() % 30; n > 0 && !in_use.empty(); --n) {
                std::swap(in_use[rng() % in_use.size()], in_use.back());
                check(in_use.back());
                back.push_back(in_use.back().head);
                in_use.pop_back();
            }
            give(back);
        } else {
            depot.trim();
            ASSERT_EQ(depot.stats().warm, 0u);
        }
        expect_none_lost(in_use.size());
        if (HasFatalFailure() || HasNonfatalFailure()) return;
    }
    for (const used& u : in_use) check(u);
    EXPECT_EQ(static_cast<std::size_t>(calls.mapped_bytes()), depot.stats().mapped_bytes);
}

TEST_P(stack_depot_test, threads_take_and_give_at_once) {
    constexpr int threads = 4;
    const int rounds = scaled(2'000, 300);
    std::vector<std::thread> all;
    for (int t = 0; t < threads; ++t) {
        all.emplace_back([&, t] {
            std::mt19937_64 rng{static_cast<unsigned>(t)};
            for (int i = 0; i < rounds; ++i) {
                stack_head* list = nullptr;
                const auto size_class = static_cast<std::uint32_t>(rng() % 2);
                depot.take(size_class, 1 + rng() % 8, list);
                for (stack_head* h = list; h != nullptr; h = h->next_free) *h->bottom() = 'x';
                depot.give(list);
                if (rng() % 50 == 0) depot.trim();
            }
        });
    }
    for (std::thread& t : all) t.join();
    expect_none_lost(0);
    EXPECT_LE(depot.stats().carved, 2u * threads * 8);
}

// --- the kernel refuses ---

TEST_P(stack_depot_test, without_address_space_take_returns_what_there_is) {
    // The nth slab is refused. A slab holds as many stacks as all before it, and at least 16.
    std::size_t expected = 0;
    for (std::uint64_t nth = 1; nth <= 5; ++nth) {
        depot.clear();
        calls.fail(failing_calls::mmap, nth);
        const auto taken = take(2, 1'000);
        EXPECT_EQ(taken.size(), expected) << "slab " << nth << " was refused";
        EXPECT_EQ(take(2, 1).size(), 0u);
        expect_none_lost(taken.size());
        give(taken);
        // The stacks that were given back are there again.
        EXPECT_EQ(take(2, 1'000).size(), expected);
        expected += std::max<std::size_t>(expected, 16);
    }
    calls.heal();
    EXPECT_EQ(take(2, 1'000).size(), 1'000u);
}

TEST_P(stack_depot_test, without_a_guard_there_is_no_stack) {
    for (std::uint64_t nth = 1; nth <= 40; ++nth) {
        depot.clear();
        calls.heal();
        // Each of the first 40 guards in turn. With lightweight guards, madvise is also called for
        // each slab, and its refusal does no harm.
        refuse_guards(nth, 1);
        auto taken = take(2, 40);
        const bool harmless = taken.size() == 40;
        if (GetParam() == guard_kind::mprotect) {
            ASSERT_EQ(taken.size(), nth - 1);
        }
        if (!harmless) {
            ASSERT_LT(taken.size(), nth);
        }
        expect_none_lost(taken.size());
        // The next attempt succeeds, also for the guard that failed.
        const auto more = take(2, static_cast<std::uint32_t>(40 - taken.size()));
        taken.insert(taken.end(), more.begin(), more.end());
        ASSERT_EQ(taken.size(), 40u);
        for (const stack_head* h : taken) ASSERT_FALSE(mem::is_readable(h->bottom() - 1));
        ASSERT_EQ(std::set<stack_head*>(taken.begin(), taken.end()).size(), 40u);
        give(taken);
        expect_none_lost(0);
    }
}

TEST_P(stack_depot_test, guards_are_installed_for_as_many_stacks_as_are_taken) {
    const bool ahead = GetParam() == guard_kind::lightweight && !arch::under_valgrind();
    std::vector<stack_head*> all;
    // The slabs of a class hold 16, 16, 32, 64, 128, 256 stacks. A batch takes at most 64 stacks,
    // and never crosses the end of a slab.
    const struct {
        std::uint32_t wanted, calls;
    } steps[] = {{1, 0}, {20, 2}, {11, 1}, {32, 1}, {64, 1}, {128, 2}, {1, 0}, {255, 4}};
    for (const auto& step : steps) {
        const std::uint64_t many = calls.made(failing_calls::madvise_many);
        const auto taken = take(2, step.wanted);
        ASSERT_EQ(taken.size(), step.wanted);
        EXPECT_EQ(calls.made(failing_calls::madvise_many) - many, ahead ? step.calls : 0)
            << step.wanted;
        all.insert(all.end(), taken.begin(), taken.end());
    }
    for (const stack_head* h : all) ASSERT_FALSE(mem::is_readable(h->bottom() - 1));
    // The next stack to be carved has no guard yet, and is not given out without one.
    EXPECT_EQ(depot.stats().carved, 512u);
    expect_none_lost(512);
}

// Some guards were installed, some were not: the former are not installed again, and no stack goes
// without.
TEST_P(stack_depot_test, a_batch_of_guards_that_is_refused_in_the_middle_loses_nothing) {
    auto all = take(2, 33);  // The last of these is the first of the third slab.
    for (std::uint32_t granted = 0; granted < 6; ++granted) {
        refuse_guards(granted + 1);
        const auto taken = take(2, 8);
        EXPECT_EQ(taken.size(), granted);
        all.insert(all.end(), taken.begin(), taken.end());
        expect_none_lost(all.size());
        calls.heal();
    }
    const auto rest = take(2, 512 - static_cast<std::uint32_t>(all.size()));
    all.insert(all.end(), rest.begin(), rest.end());
    ASSERT_EQ(std::set<stack_head*>(all.begin(), all.end()).size(), 512u);
    for (const stack_head* h : all) ASSERT_FALSE(mem::is_readable(h->bottom() - 1));
}

TEST_P(stack_depot_test, while_guards_are_refused_those_that_have_one_are_reused) {
    const auto taken = take(2, 10);
    ASSERT_EQ(taken.size(), 10u);
    refuse_guards(1);
    EXPECT_EQ(take(2, 1).size(), 0u) << refused_call() << " fails";
    give(taken);
    EXPECT_EQ(take(2, 20).size(), 10u);
    give(taken);
    expect_none_lost(0);
}

TEST_P(stack_depot_test, memory_that_the_kernel_does_not_take_back_does_no_harm) {
    const auto taken = take(2, 20);
    ASSERT_EQ(taken.size(), 20u);
    give(taken);
    calls.fail(failing_calls::madvise, 1);
    depot.trim();
    expect_none_lost(0);
    calls.heal();
    const auto again = take(2, 20);
    ASSERT_EQ(again.size(), 20u);
    for (stack_head* h : again) EXPECT_EQ(h, h->home->head(h->index));
    EXPECT_EQ(depot.stats().carved, 20u);
}

// --- how deep ---

TEST_P(stack_depot_test, the_high_water_mark_is_the_deepest_page_touched) {
    std::mt19937_64 rng{test_seed()};
    for (const std::uint32_t size_class : {0u, 2u, 7u}) {
        const auto taken = take(size_class, 20);
        ASSERT_EQ(taken.size(), 20u);
        for (stack_head* h : taken) {
            EXPECT_EQ(mem::high_water_bytes(*h), page_bytes);  // Only the head's own page.
            std::size_t deepest = page_bytes;
            for (int i = 0; i < 3; ++i) {
                // Below the top page, where the head lies.
                const std::size_t depth = page_bytes + 1 + rng() % (h->usable_bytes() - page_bytes);
                h->bottom()[h->usable_bytes() - depth] = 'x';
                deepest = std::max(deepest, os::round_up(depth, page_bytes));
                EXPECT_EQ(mem::high_water_bytes(*h), deepest);
            }
        }
        give(taken);
    }
}

TEST_P(stack_depot_test, a_high_water_mark_that_cannot_be_measured_is_zero) {
    const auto taken = take(2, 1);
    ASSERT_EQ(taken.size(), 1u);
    calls.fail(failing_calls::mincore, 1);
    EXPECT_EQ(mem::high_water_bytes(*taken[0]), 0u);
}

}  // namespace
