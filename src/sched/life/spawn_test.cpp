// SPDX-License-Identifier: MIT
// variants: mprotect p1 nosync
#include "sched/life/spawn.hpp"

#include <atomic>
#include <cstdlib>
#include <random>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "internal/failing_calls.hpp"
#include "mem/guard.hpp"
#include "support/conservation.hpp"
#include "support/debug_words.hpp"
#include "support/one_processor.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"
#include "ums/ums.hpp"

// What happens when the kernel gives no memory for another fiber. (What a fiber does otherwise:
// sched/fiber/fiber_test.cpp.)

namespace {

using namespace ums;
using os::failing_calls;

class spawn_test : public conserving_test {
protected:
    // Counts only the stacks' mappings, because a run queue that cannot grow is fatal.
    spawn_test() { calls.count_mappings_from(std::size_t{1} << 20); }

    failing_calls calls;

    // Makes guards fail from the nth on. Several are installed one by one, so that each can.
    void refuse_guards(std::uint64_t nth, std::uint64_t times = ~std::uint64_t{0}) {
        calls.fail(failing_calls::madvise_many, 1);
        calls.fail(guard_call(), nth, times);
    }

    // The call that installs a guard here.
    static failing_calls::call guard_call() {
        const bool lightweight = !has_debug_word("guard=mprotect");
        return lightweight && mem::has_lightweight_guards() ? failing_calls::madvise
                                                            : failing_calls::mprotect;
    }
};

// Makes fibers that park until the kernel refuses one. The error must be the documented one.
std::vector<fiber> spawn_until_refused(std::size_t most, const fiber_options& how = {}) {
    std::vector<fiber> made;
    try {
        while (made.size() < most) made.emplace_back(how, [] { this_fiber::park(); });
    } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), std::errc::resource_unavailable_try_again) << e.what();
    }
    return made;
}

void release(std::vector<fiber>& all) {
    for (fiber& f : all) f.ref().unpark();
    for (fiber& f : all) f.join();
    all.clear();
}

// A fiber that has lost its processor does not find the stacks in the processor's cache.
options without_hand_offs(unsigned processors) {
    return {.processors = processors, .block = block_detection::off};
}

void lets_fibers_go_on(failing_calls& calls, failing_calls::call refused) {
    std::vector<fiber> before = spawn_until_refused(10);
    ASSERT_EQ(before.size(), 10u);
    calls.fail(failing_calls::madvise_many, 1);  // Each guard is installed by a call of its own.
    calls.fail(refused, 1);
    constexpr std::size_t most = 5'000;
    std::vector<fiber> made = spawn_until_refused(most);
    EXPECT_LT(made.size(), most);
    // Tries again and again: each is refused, and none takes anything.
    const runtime_stats at_first = stats();
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(spawn_until_refused(1).empty());
    EXPECT_EQ(stats().stacks_made, at_first.stacks_made);
    EXPECT_EQ(stats().spawned, at_first.spawned);
    // The existing fibers continue, and their stacks are available again (unless they lie in
    // another processor's cache).
    const std::size_t n = made.size();
    release(made);
    made = spawn_until_refused(n);
    if (cluster::standard().processors() == 1) {
        EXPECT_EQ(made.size(), n);
    }
    release(made);
    calls.heal();
    made = spawn_until_refused(n + 500);
    EXPECT_EQ(made.size(), n + 500);
    release(made);
    release(before);
}

TEST_F(spawn_test, without_address_space_it_throws_and_the_others_go_on) {
    for (const unsigned n : {1u, 2u})
        run(without_hand_offs(n), [this] { lets_fibers_go_on(calls, failing_calls::mmap); });
}

TEST_F(spawn_test, without_a_guard_it_throws_and_the_others_go_on) {
    for (const unsigned n : {1u, 2u})
        run(without_hand_offs(n), [this] { lets_fibers_go_on(calls, guard_call()); });
}

TEST_F(spawn_test, from_a_plain_thread_it_throws_alike) {
    runtime started{{.processors = 2}};
    lets_fibers_go_on(calls, guard_call());
}

TEST_F(spawn_test, a_loop_goes_on_without_stacks) {
    run(without_hand_offs(1), [this] {
        std::vector<fiber> before = spawn_until_refused(10);
        refuse_guards(1);
        std::vector<fiber> made = spawn_until_refused(5'000);
        std::atomic<int> calls = 0;
        EXPECT_THROW(fork_join([&] { ++calls; }, [&] { ++calls; }), std::system_error);
        EXPECT_EQ(calls, 0);
        parallel_for(0, 100, 1, [&](int) { ++calls; });
        EXPECT_EQ(calls, 100);
        // With one stack.
        before.back().ref().unpark();
        before.back().join();
        before.pop_back();
        parallel_for(0, 100, 1, [&](int) { ++calls; });
        EXPECT_EQ(calls, 200);
        EXPECT_THROW(parallel_for(0, 100, 1, [](int) { throw std::logic_error{"each"}; }),
                     std::logic_error);
        calls = 0;
        EXPECT_THROW(fork_join(
                         [&] {
                             ++calls;
                             this_fiber::yield();
                             ++calls;
                         },
                         [&] { ++calls; }, [&] { ++calls; }),
                     std::system_error);
        EXPECT_EQ(calls, 2);  // The one that had begun has ended.
        release(made);
        release(before);
    });
}

TEST_F(spawn_test, of_another_stack_size_it_throws_alike) {
    run(without_hand_offs(2), [this] {
        const fiber_options large{.stack_bytes = 1024 * 1024};
        auto before = spawn_until_refused(3, large);
        calls.fail(failing_calls::mmap, 1);
        auto made = spawn_until_refused(5'000, large);
        EXPECT_LT(made.size(), 5'000u);
        EXPECT_FALSE(made.empty());
        // The default size is not affected while it has stacks.
        fiber{[] {}}.join();
        calls.heal();
        release(made);
        release(before);
    });
}

// What was captured for a fiber that could not be made is destroyed, once.
TEST_F(spawn_test, arguments_of_a_refused_fiber_are_destroyed) {
    run(without_hand_offs(1), [this] {
        calls.fail(failing_calls::mmap, 1);
        std::vector<fiber> made = spawn_until_refused(5'000);
        const auto token = std::make_shared<int>(1);
        EXPECT_THROW((fiber{[copy = token] {}}), std::system_error);
        EXPECT_THROW((void)spawn([copy = token] { return *copy; }), std::system_error);
        EXPECT_EQ(token.use_count(), 1);
        calls.heal();
        release(made);
    });
}

TEST_F(spawn_test, every_single_refusal_is_survived) {
    std::mt19937_64 rng{test_seed()};
    const failing_calls::call refused[] = {failing_calls::mmap, guard_call()};
    for (int round = 0; round < scaled(60, 15); ++round) {
        if (round % 2 == 0)
            calls.fail(failing_calls::madvise_many, 1);
        else
            calls.heal();
        run({.processors = 2}, [&] {
            std::vector<fiber> all;
            for (int step = 0; step < 30; ++step) {
                calls.fail(refused[rng() % 2], 1 + rng() % 20, 1 + rng() % 5);
                auto more = spawn_until_refused(rng() % 100);
                calls.heal();
                for (fiber& f : more) all.push_back(std::move(f));
                // Some of them end.
                std::vector<fiber> some;
                for (auto n = rng() % 60; n > 0 && !all.empty(); --n) {
                    std::swap(all[rng() % all.size()], all.back());
                    some.push_back(std::move(all.back()));
                    all.pop_back();
                }
                release(some);
                if (rng() % 8 == 0) trim();
            }
            release(all);
        });
        // Nothing of the runtime is left: its stop has checked the stacks.
        ASSERT_EQ(calls.mapped_bytes(), 0);
    }
}

TEST_F(spawn_test, threads_that_spawn_while_the_kernel_refuses_lose_nothing) {
    runtime started{{.processors = 2}};
    std::vector<fiber> before = spawn_until_refused(10);
    refuse_guards(50, 2'000);
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
        threads.emplace_back([] {
            for (int i = 0; i < 20; ++i) {
                std::vector<fiber> made = spawn_until_refused(40);
                release(made);
            }
        });
    }
    for (std::thread& t : threads) t.join();
    calls.heal();
    release(before);
}

// This holds even for the first fiber.
TEST_F(spawn_test, a_run_without_any_stack_throws_and_leaves_nothing) {
    for (std::uint64_t nth = 1; nth <= 8; ++nth) {
        bool ran = false;
        try {
            refuse_guards(nth, 1);
            run({.processors = 1,
                 .guard = guard_call() == failing_calls::madvise ? guard_kind::lightweight
                                                                 : guard_kind::mprotect},
                [&ran] { ran = true; });
            EXPECT_TRUE(ran);
        } catch (const std::system_error& e) {
            // Either the trial of the guard at the start failed, or the first stack.
            EXPECT_TRUE(e.code() == std::errc::resource_unavailable_try_again ||
                        e.code() == std::errc::operation_not_supported)
                << e.what();
            EXPECT_FALSE(ran);
        }
        calls.heal();
        EXPECT_EQ(calls.mapped_bytes(), 0);
        run([&ran] { ran = true; });
        EXPECT_TRUE(ran);
    }
}

// --- how many ---

// The processor's cache serves them all, rather than a fresh batch for each.
TEST_F(spawn_test, no_more_stacks_are_made_than_a_batch_beyond_the_fibers) {
    run(one_processor, [] {
        cluster elsewhere{{.processors = 1}};
        const fiber_options kinds[] = {{}, {.stack_bytes = 256 * 1024}, {.cluster = &elsewhere}};
        for (const fiber_options& how : kinds) {
            std::vector<fiber> all = spawn_until_refused(1'000, how);
            EXPECT_EQ(all.size(), 1'000u);
            EXPECT_LE(stats().stacks_made, 1'000u + 3 * (64 + 256));
            release(all);
        }
    });
}

TEST_F(spawn_test, what_was_spawned_and_what_has_ended_is_counted) {
    run({.processors = 2}, [] {
        const runtime_stats before = stats();
        std::vector<fiber> all = spawn_until_refused(100);
        EXPECT_EQ(stats().spawned, before.spawned + 100);
        EXPECT_EQ(stats().finished, before.finished);
        release(all);
    });
    EXPECT_EQ(stats().spawned, 0u);  // No runtime.
}

}  // namespace
