// SPDX-License-Identifier: MIT
// variants: mprotect migrate fifo p1 nosync
#include <alloca.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <system_error>
#include <vector>

#include <gtest/gtest.h>

#include "sched/run/carrier.hpp"
#include "sched/run/cluster.hpp"
#include "support/both_worlds.hpp"
#include "support/conservation.hpp"
#include "support/error_of.hpp"
#include "support/one_processor.hpp"
#include "support/scale.hpp"
#include "ums/cluster.hpp"
#include "ums/fiber.hpp"
#include "ums/run.hpp"
#include "ums/this_fiber.hpp"

namespace {

using ums::fiber;
namespace this_fiber = ums::this_fiber;

class fiber_options_test : public conserving_test {};

// A fiber that was found blocked, on a busy machine perhaps at a page fault, has none until it
// switches.
const ums::sched::processor* processor_here() {
    for (;; ums::this_fiber::yield())
        if (const auto* p = ums::sched::this_carrier()->proc.get()) return p;
}

// --- name ---

TEST_F(fiber_options_test, the_name_is_copied_and_seen_inside_and_outside) {
    on_a_fiber_and_on_a_thread([] {
        std::string inside, outside;
        std::atomic<bool> go = false;
        fiber f;
        {
            std::string name = "a name that does not fit into a small string";
            f = fiber{{.name = name}, [&] {
                          while (!go) this_fiber::yield();
                          inside = this_fiber::name();
                      }};
            name.assign(name.size(), 'x');
        }
        outside = f.ref().name();
        go = true;
        f.join();
        EXPECT_EQ(inside, "a name that does not fit into a small string");
        EXPECT_EQ(outside, inside);
    });
}

TEST_F(fiber_options_test, at_most_256_bytes_of_the_name_are_kept) {
    on_a_fiber_and_on_a_thread([] {
        for (const std::size_t n : {0, 1, 255, 256, 257, 100'000}) {
            std::string name(n, '-');
            for (std::size_t i = 0; i < n; ++i) name[i] = static_cast<char>('a' + i % 26);
            std::string got = "not run";
            fiber{{.name = name}, [&] { got = this_fiber::name(); }}.join();
            EXPECT_EQ(got, name.substr(0, 256)) << n;
        }
    });
}

TEST_F(fiber_options_test, without_a_name_it_is_empty) {
    on_a_fiber_and_on_a_thread([] {
        std::string got = "not run";
        // The stack may have belonged to a named one.
        fiber{{.name = "earlier"}, [] {}}.join();
        fiber{[&] { got = this_fiber::name(); }}.join();
        EXPECT_EQ(got, "");
    });
    EXPECT_EQ(this_fiber::name(), "");
}

// --- stack ---

// Writes to `bytes` of the stack, from the top downwards, as calls would.
[[gnu::noinline]] unsigned touch(std::size_t bytes) {
    auto* block = static_cast<volatile unsigned char*>(alloca(bytes));
    unsigned sum = 0;
    for (std::size_t i = bytes; i-- > 0;) block[i] = static_cast<unsigned char>(i);
    for (std::size_t i = 0; i < bytes; ++i) sum += block[i];
    return sum;
}

unsigned sum_of(std::size_t bytes) {
    unsigned sum = 0;
    for (std::size_t i = 0; i < bytes; ++i) sum += static_cast<unsigned char>(i);
    return sum;
}

TEST_F(fiber_options_test, a_stack_holds_what_was_asked_for) {
    on_a_fiber_and_on_a_thread([] {
        for (std::size_t kib : {16, 20, 32, 64, 100, 256, 1024, 5000, 64 * 1024}) {
            // The descriptor, the callable and the frames below it take some.
            const std::size_t used = kib * 1024 - (under_asan || under_tsan ? 6000 : 3000);
            unsigned sum = 0;
            fiber{{.stack_bytes = kib * 1024}, [&] { sum = touch(used); }}.join();
            EXPECT_EQ(sum, sum_of(used)) << kib << " KiB";
        }
    });
}

TEST_F(fiber_options_test, the_stack_of_the_runtime_options_is_the_default) {
    ums::run({.processors = 2, .stack_bytes = 1024 * 1024}, [] {
        unsigned sum = 0;
        fiber{[&] { sum = touch(1000 * 1024); }}.join();
        EXPECT_EQ(sum, sum_of(1000 * 1024));
    });
}

TEST_F(fiber_options_test, stacks_of_many_sizes_live_and_are_reused_side_by_side) {
    on_a_fiber_and_on_a_thread([] {
        for (int round = 0; round < scaled(20, 3); ++round) {
            std::atomic<int> wrong = 0;
            std::vector<fiber> all;
            for (std::size_t i = 0; i < 100; ++i) {
                const std::size_t bytes = std::size_t{16 * 1024} << (i % 5);
                all.emplace_back(ums::fiber_options{.stack_bytes = bytes}, [&wrong, bytes] {
                    this_fiber::yield();
                    const std::size_t used = bytes / 2;
                    wrong += touch(used) != sum_of(used);
                });
            }
            for (fiber& f : all) f.join();
            EXPECT_EQ(wrong, 0);
        }
    });
}

TEST_F(fiber_options_test, more_than_a_gibibyte_is_refused) {
    on_a_fiber_and_on_a_thread([] {
        EXPECT_EQ(error_of([] {
                      fiber{{.stack_bytes = (std::size_t{1} << 30) + 1}, [] {}};
                  }),
                  std::errc::invalid_argument);
    });
}

// --- pinned ---

TEST_F(fiber_options_test, a_pinned_one_never_leaves_its_creators_processor) {
    // Without hand-offs a carrier always holds one.
    ums::run({.processors = 3, .block = ums::block_detection::off}, [] {
        std::atomic<int> strayed = 0, ended = 0;
        std::vector<fiber> creators;
        for (int c = 0; c < 6; ++c)
            creators.emplace_back([&] {
                for (int i = 0; i < 5; ++i) {
                    // Nothing between here and the creation can move the creator.
                    const auto* home = processor_here();
                    fiber{{.pinned = true},
                          [&, home] {
                              for (int n = 0; n < scaled(300, 60); ++n) {
                                  strayed += processor_here() != home;
                                  if (n % 3 == 0) this_fiber::yield();
                                  if (n % 3 == 1)
                                      this_fiber::sleep_for(std::chrono::microseconds{n});
                                  if (n % 3 == 2) fiber{[] { this_fiber::yield(); }}.join();
                              }
                              ++ended;
                          }}
                        .detach();
                    this_fiber::yield();
                }
            });
        for (fiber& f : creators) f.join();
        while (ended != 30) this_fiber::yield();
        EXPECT_EQ(strayed, 0);
    });
}

TEST_F(fiber_options_test, pinned_from_a_plain_thread_it_runs_on_the_first_processor) {
    ums::runtime started{{.processors = 3}};
    for (int i = 0; i < 100; ++i) {
        unsigned index = 99;
        fiber{{.pinned = true}, [&] { index = processor_here()->index(); }}.join();
        ASSERT_EQ(index, 0u);
    }
}

TEST_F(fiber_options_test, pinned_ones_are_unparked_on_their_processor_by_anybody) {
    ums::runtime started{{.processors = 3}};
    constexpr int rounds = scaled(5000, 500);
    std::atomic<int> strayed = 0, received = 0;
    fiber f{{.pinned = true}, [&] {
                for (int i = 0; i < rounds; ++i) {
                    this_fiber::park();
                    strayed += processor_here()->index() != 0;
                    ++received;
                }
            }};
    const ums::fiber_ref ref = f.ref();
    fiber waker{[&] {
        for (int i = 0; i < rounds; ++i) {
            while (received < i) this_fiber::yield();
            ref.unpark();
        }
    }};
    waker.join();
    f.join();
    EXPECT_EQ(strayed, 0);
    EXPECT_EQ(received, rounds);
}

// Fibers pinned to one processor must share it with others, whatever the policy.
TEST_F(fiber_options_test, pinned_ones_that_yield_do_not_starve_others) {
    ums::run({.processors = 1}, [] {
        std::atomic<bool> stop = false;
        std::vector<fiber> pinned;
        for (int i = 0; i < 3; ++i)
            pinned.emplace_back(ums::fiber_options{.pinned = true}, [&] {
                while (!stop) this_fiber::yield();
            });
        fiber other{[&] {
            for (int i = 0; i < 1000; ++i) this_fiber::yield();
            stop = true;
        }};
        other.join();
        for (fiber& f : pinned) f.join();
    });
}

TEST_F(fiber_options_test, others_that_yield_do_not_starve_a_pinned_one) {
    ums::run({.processors = 1}, [] {
        std::atomic<bool> stop = false;
        std::vector<fiber> others;
        for (int i = 0; i < 3; ++i)
            others.emplace_back([&] {
                while (!stop) this_fiber::yield();
            });
        fiber{{.pinned = true},
              [&] {
                  for (int i = 0; i < 1000; ++i) this_fiber::yield();
                  stop = true;
              }}
            .join();
        for (fiber& f : others) f.join();
    });
}

// --- cluster ---

TEST_F(fiber_options_test, a_fiber_starts_in_the_named_cluster_and_its_children_in_its_own) {
    on_a_fiber_and_on_a_thread([] {
        ums::cluster other{{.name = "other", .processors = 2}};
        auto home = [] { return std::string{processor_here()->home().name()}; };
        std::string self, child, back;
        fiber{{.cluster = &other},
              [&] {
                  self = home();
                  fiber{[&] { child = home(); }}.join();
                  fiber{{.cluster = &ums::cluster::standard()}, [&] { back = home(); }}.join();
              }}
            .join();
        EXPECT_EQ(self, "other");
        EXPECT_EQ(child, "other");
        EXPECT_EQ(back, "main");
    });
}

TEST_F(fiber_options_test, pinned_in_another_cluster_it_runs_on_that_ones_first_processor) {
    on_a_fiber_and_on_a_thread([] {
        ums::cluster other{{.name = "other", .processors = 2}};
        std::string home;
        unsigned index = 99;
        fiber{{.pinned = true, .cluster = &other},
              [&] {
                  this_fiber::yield();
                  home = processor_here()->home().name();
                  index = processor_here()->index();
              }}
            .join();
        EXPECT_EQ(home, "other");
        EXPECT_EQ(index, 0u);
    });
}

// --- launch ---

// With options::migrate a dispatched fiber moves away from its creator, so nothing is dispatched.

TEST_F(fiber_options_test, a_posted_one_runs_after_its_creator_went_on) {
    ums::run(one_processor, [] {
        for (int i = 0; i < 200; ++i) {
            std::atomic<bool> ran = false;
            fiber f{[&] { ran = true; }};
            ASSERT_FALSE(ran);
            f.join();
            ASSERT_TRUE(ran);
        }
    });
}

TEST_F(fiber_options_test, a_dispatched_one_runs_before_its_creator_goes_on) {
    if (is_scattered()) GTEST_SKIP() << "nothing is dispatched then";
    ums::run(one_processor, [] {
        // More often than there are switches in a round.
        for (int i = 0; i < 200; ++i) {
            std::atomic<int> order = 0;
            auto step = [&](int digit) { order = order * 10 + digit; };
            fiber f{{.launch = ums::launch::dispatch}, [&] {
                        step(1);
                        this_fiber::yield();
                        step(3);
                    }};
            step(2);
            f.join();
            ASSERT_EQ(order, 123) << i;
        }
    });
}

TEST_F(fiber_options_test, dispatched_ones_nest) {
    if (is_scattered()) GTEST_SKIP() << "nothing is dispatched then";
    ums::run(one_processor, [] {
        for (int i = 0; i < 100; ++i) {
            std::vector<int> order;
            const ums::fiber_options now{.launch = ums::launch::dispatch};
            fiber{now,
                  [&] {
                      order.push_back(1);
                      fiber{now,
                            [&] {
                                order.push_back(2);
                                fiber{now, [&] { order.push_back(3); }}.join();
                                order.push_back(4);
                            }}
                          .join();
                      order.push_back(5);
                  }}
                .join();
            ASSERT_EQ(order, (std::vector{1, 2, 3, 4, 5})) << i;
        }
    });
}

TEST_F(fiber_options_test, a_dispatched_one_may_be_made_inside_a_catch_block_or_by_a_thread) {
    on_a_fiber_and_on_a_thread([] {
        const ums::fiber_options now{.launch = ums::launch::dispatch};
        int runs = 0;
        fiber{now, [&] { ++runs; }}.join();
        try {
            throw 7;
        } catch (int) {
            fiber{now,
                  [&] {
                      EXPECT_EQ(std::current_exception(), nullptr);
                      ++runs;
                  }}
                .join();
            EXPECT_NE(std::current_exception(), nullptr);
        }
        EXPECT_EQ(runs, 2);
    });
}

}  // namespace
