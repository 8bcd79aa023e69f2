// SPDX-License-Identifier: MIT
// variants: mprotect migrate fifo nomembarrier nosync

// Clusters: their processors come and go while fibers run, and fibers move from one cluster to
// another.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <ranges>
#include <sched.h>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/child.hpp"
#include "support/conservation.hpp"
#include "support/error_of.hpp"
#include "support/one_processor.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"
#include "ums/blocking.hpp"
#include "ums/cluster.hpp"
#include "ums/latch.hpp"
#include "ums/policy.hpp"
#include "ums/run.hpp"
#include "ums/this_fiber.hpp"

namespace {

using namespace std::chrono_literals;
namespace this_fiber = ums::this_fiber;

class cluster_test : public conserving_test {};

// The kernel thread that the caller runs on now; without a detector a processor stays with the one
// it began with. Not inlined, because the address of a thread-local must not outlive a switch.
[[gnu::noinline]] std::thread::id carrier_now() { return std::this_thread::get_id(); }

TEST_F(cluster_test, a_fiber_runs_only_in_its_cluster) {
    ums::run(one_processor, [] {
        const auto here = carrier_now();
        ums::cluster other{{.name = "other"}};
        ums::fiber{{.cluster = &other},
                   [&] {
                       for (int i = 0; i < 100; ++i) {
                           EXPECT_NE(carrier_now(), here);
                           this_fiber::yield();
                       }
                   }}
            .join();
    });
}

TEST_F(cluster_test, children_are_born_where_their_parent_runs) {
    ums::run(one_processor, [] {
        ums::cluster other{{}};
        ums::fiber{{.cluster = &other},
                   [] {
                       const auto there = carrier_now();
                       ums::fiber{[&] { EXPECT_EQ(carrier_now(), there); }}.join();
                   }}
            .join();
    });
}

TEST_F(cluster_test, a_fiber_migrates_there_and_back_under_load) {
    ums::run({.processors = 2}, [] {
        ums::cluster other{{.processors = 2}};
        ums::cluster& standard = ums::cluster::standard();
        std::atomic<int> moves{0};
        std::vector<ums::fiber> all;
        const int rounds = scaled(1000, 50);
        for (int i = 0; i < 50; ++i)
            all.emplace_back([&] {
                for (int k = 0; k < rounds; ++k) {
                    this_fiber::migrate(k % 2 == 0 ? other : standard);
                    moves.fetch_add(1, std::memory_order_relaxed);
                }
            });
        for (auto& f : all) f.join();
        EXPECT_EQ(moves.load(), 50 * rounds);
    });
}

TEST_F(cluster_test, migrating_to_where_it_is_does_nothing) {
    ums::run({.processors = 1}, [] { this_fiber::migrate(ums::cluster::standard()); });
}

TEST_F(cluster_test, the_destructor_waits_for_detached_fibers) {
    ums::run({.processors = 1}, [] {
        std::atomic<int> ended{0};
        {
            ums::cluster other{{.processors = 2}};
            for (int i = 0; i < 100; ++i)
                ums::fiber{{.cluster = &other},
                           [&] {
                               this_fiber::sleep_for(1ms);
                               ended.fetch_add(1);
                           }}
                    .detach();
        }
        EXPECT_EQ(ended.load(), 100);
    });
}

TEST_F(cluster_test, a_plain_thread_may_own_a_cluster) {
    ums::runtime started{{.processors = 1}};
    std::atomic<bool> ran{false};
    {
        ums::cluster own{{}};
        ums::fiber{{.cluster = &own}, [&] { ran = true; }}.detach();
    }
    EXPECT_TRUE(ran.load());
}

TEST_F(cluster_test, making_one_without_a_runtime_is_not_permitted) {
    EXPECT_EQ(error_of([] { ums::cluster{{}}; }), std::errc::operation_not_permitted);
}

TEST_F(cluster_test, no_processors_are_an_invalid_argument) {
    ums::run({.processors = 1}, [] {
        for (const unsigned n : {0u, 1025u})
            EXPECT_EQ(error_of([n] { ums::cluster{{.processors = n}}; }),
                      std::errc::invalid_argument);
    });
}

TEST_F(cluster_test, the_last_processor_cannot_be_removed) {
    ums::run({.processors = 1}, [] {
        ums::cluster other{{.processors = 2}};
        other.remove_processor();
        EXPECT_EQ(other.processors(), 1u);
        EXPECT_EQ(error_of([&] { other.remove_processor(); }), std::errc::invalid_argument);
        EXPECT_EQ(other.processors(), 1u);
    });
}

TEST_F(cluster_test, a_fiber_may_remove_the_processor_it_runs_on) {
    ums::run({.processors = 1}, [] {
        ums::cluster other{{.processors = 4}};
        // Repeated often: its joins of kernel threads block, so it loses its processor and is
        // stopped, anywhere in there, and those threads may be new ones.
        for (int round = 0; round < scaled(12, 4); ++round)
            ums::fiber{{.pinned = round % 2 == 1, .cluster = &other},
                       [&] {
                           while (other.processors() > 1) other.remove_processor();
                           while (other.processors() < 4) other.add_processor();
                       }}
                .join();
        EXPECT_EQ(other.processors(), 4u);
    });
}

TEST_F(cluster_test, a_sleeper_wakes_although_its_processor_was_removed) {
    ums::run({.processors = 1}, [] {
        ums::cluster other{{.processors = 4}};
        std::vector<ums::fiber> sleepers;
        for (int i = 0; i < 200; ++i)
            sleepers.emplace_back(ums::fiber_options{.cluster = &other}, [i] {
                this_fiber::sleep_for(std::chrono::microseconds{i * 50});
            });
        while (other.processors() > 1) other.remove_processor();
        for (auto& f : sleepers) f.join();
    });
}

// 10,000 times with TEST_ROUNDS=10000.
TEST_F(cluster_test, processors_come_and_go_while_fibers_run_park_and_sleep) {
    std::mt19937_64 rng{test_seed()};
    ums::run({.processors = 2}, [&] {
        ums::cluster busy{{.processors = 3}};
        std::atomic<bool> stop{false};
        std::atomic<std::uint64_t> turns{0};
        std::vector<ums::fiber> all;
        for (int i = 0; i < 60; ++i)
            all.emplace_back(ums::fiber_options{.pinned = i % 5 == 0, .cluster = &busy}, [&, i] {
                std::mt19937 mine(static_cast<unsigned>(i));
                while (!stop.load(std::memory_order_relaxed)) {
                    turns.fetch_add(1, std::memory_order_relaxed);
                    switch (mine() % 4) {
                        case 0:
                            this_fiber::yield();
                            break;
                        case 1:
                            this_fiber::sleep_for(std::chrono::microseconds{mine() % 200});
                            break;
                        case 2:
                            ums::fiber{[] { this_fiber::yield(); }}.join();
                            break;
                        default:
                            this_fiber::ref().unpark();
                            this_fiber::park();
                    }
                }
            });
        const int rounds = sized("TEST_ROUNDS", 300, 30);
        for (int i = 0; i < rounds; ++i) {
            if (busy.processors() > 1 && rng() % 2 == 0)
                busy.remove_processor();
            else if (busy.processors() < 6)
                busy.add_processor();
        }
        stop = true;
        for (auto& f : all) f.join();
        EXPECT_GT(turns.load(), 0u);
    });
}

constexpr std::array all_policies{ums::policy_kind::work_stealing,
                                  ums::policy_kind::global_fifo,
                                  ums::policy_kind::local_locked,
                                  ums::policy_kind::local_mpsc,
                                  ums::policy_kind::local_mpsc_intrusive,
                                  ums::policy_kind::priority,
                                  ums::policy_kind::earliest_deadline_first,
                                  ums::policy_kind::fair_share};

// By some policies the fiber belongs to that processor, as long as the policy keeps a place for it.
TEST_F(cluster_test, a_fiber_may_remove_the_processor_it_belongs_to) {
    for (const auto kind : all_policies) {
        SCOPED_TRACE(ums::name_of(kind));
        ums::run({.processors = 1}, [&] {
            ums::cluster other{{.processors = 3, .policy = kind}};
            ums::fiber{{.cluster = &other},
                       [&] {
                           while (other.processors() > 1) {
                               this_fiber::migrate(other, other.processors() - 1);
                               other.remove_processor();
                           }
                       }}
                .join();
            EXPECT_EQ(other.processors(), 1u);
        });
    }
}

// The running fiber delays the removal. Another one that belongs to the processor is not delayed.
TEST_F(cluster_test, the_others_take_what_waits_for_a_processor_that_cannot_go_yet) {
    for (const auto kind : all_policies) {
        SCOPED_TRACE(ums::name_of(kind));
        ums::run({.processors = 1, .time_slice_us = 0}, [&] {
            ums::cluster other{{.processors = 2, .policy = kind, .time_slice_us = 0}};
            std::atomic<bool> is_there{false}, computes{false}, over{false};
            ums::fiber waiter{{.cluster = &other}, [&] {
                                  this_fiber::migrate(other, 1);
                                  is_there = true;
                                  this_fiber::park();
                                  over = true;
                              }};
            ums::fiber worker{{.cluster = &other}, [&] {
                                  while (!is_there) this_fiber::yield();
                                  this_fiber::migrate(other, 1);  // Once the waiter is parked.
                                  computes = true;
                                  while (!over) {
                                  }
                              }};
            std::thread waker{[&] {
                while (!computes || other.processors() != 1) std::this_thread::yield();
                waiter.ref().unpark();
            }};
            while (!computes) this_fiber::yield();
            other.remove_processor();
            ums::blocking([&] { waker.join(); });
            waiter.join();
            worker.join();
        });
    }
}

TEST_F(cluster_test, several_may_add_and_remove_at_once) {
    ums::run({.processors = 2}, [] {
        ums::cluster busy{{.processors = 2}};
        std::vector<ums::fiber> all;
        for (int i = 0; i < 8; ++i)
            all.emplace_back([&] {
                for (int k = 0; k < scaled(30, 5); ++k) {
                    busy.add_processor();
                    busy.remove_processor();
                }
            });
        for (auto& f : all) f.join();
        EXPECT_EQ(busy.processors(), 2u);
    });
}

TEST_F(cluster_test, a_pinned_fiber_never_leaves_its_processor) {
    ums::run({.processors = 2, .block = ums::block_detection::off}, [] {
        std::vector<ums::fiber> all;
        for (int i = 0; i < 20; ++i)
            all.emplace_back(ums::fiber_options{.pinned = i % 2 == 0}, [i] {
                const auto home = carrier_now();
                for (int k = 0; k < scaled(2000, 100); ++k) {
                    if (k % 16 == 0) this_fiber::sleep_for(10us);
                    this_fiber::yield();
                    if (i % 2 == 0) {
                        ASSERT_EQ(carrier_now(), home);
                    }
                }
            });
        for (auto& f : all) f.join();
    });
}

// --- To a certain processor ----------------------------------------------------------------------

// A policy that says which processor each fiber runs on.
class watched_policy final : public ums::policy {
public:
    void attach(unsigned) override {}
    void detach(unsigned) override {}
    void ready(ums::fiber_ref f, unsigned) noexcept override {
        const std::lock_guard guard{lock_};
        all_.push_back(f);
    }
    ums::fiber_ref next(unsigned) noexcept override {
        const std::lock_guard guard{lock_};
        return all_.pop_front();
    }
    bool empty(unsigned) const noexcept override {
        const std::lock_guard guard{lock_};
        return all_.empty();
    }
    ums::fiber_ref instead_of(ums::fiber_ref, unsigned processor) noexcept override {
        yielded_on = processor;
        return {};
    }
    void placed(ums::fiber_ref f, unsigned processor) noexcept override {
        f.set_tag(processor + 1);
    }
    std::atomic<unsigned> yielded_on{~0u};

private:
    mutable std::mutex lock_;
    ums::fiber_queue all_;
};

TEST_F(cluster_test, a_fiber_goes_to_the_processor_it_names) {
    ums::run({.processors = 1, .block = ums::block_detection::off}, [] {
        watched_policy* policy = nullptr;
        ums::cluster other{{.processors = 4, .make_policy = [&] {
                                auto made = std::make_unique<watched_policy>();
                                policy = made.get();
                                return made;
                            }}};
        std::mt19937 random{static_cast<unsigned>(test_seed())};
        for (int i = 0; i < scaled(2000, 200); ++i) {
            const unsigned to = random() % 4;
            this_fiber::migrate(other, to);
            EXPECT_EQ(this_fiber::ref().tag(), to + 1);
            this_fiber::yield();
            ASSERT_EQ(policy->yielded_on, to);
        }
        this_fiber::migrate(ums::cluster::standard());
    });
}

TEST_F(cluster_test, under_load_it_comes_there_by_every_policy) {
    for (const auto kind : {ums::policy_kind::work_stealing, ums::policy_kind::global_fifo,
                            ums::policy_kind::local_mpsc, ums::policy_kind::priority}) {
        SCOPED_TRACE(ums::name_of(kind));
        ums::run({.processors = 1}, [&] {
            std::atomic<bool> stop{false};
            ums::cluster busy{{.processors = 3, .policy = kind}};  // Its end waits for the posted.
            for (int i = 0; i < 20; ++i)
                busy.post([&] {
                    while (!stop.load(std::memory_order_relaxed)) this_fiber::yield();
                });
            std::vector<ums::fiber> all;
            for (int i = 0; i < 10; ++i)
                all.emplace_back([&, i] {
                    std::mt19937 random(static_cast<unsigned>(i));
                    for (int k = 0; k < scaled(100, 10); ++k)
                        this_fiber::migrate(busy, random() % 3);
                    this_fiber::migrate(ums::cluster::standard(), 0);
                });
            for (auto& f : all) f.join();
            stop = true;
        });
    }
}

// Its processor keeps its kernel thread, without a detector.
TEST_F(cluster_test, a_pinned_fiber_takes_its_pin_along) {
    ums::run({.processors = 1, .block = ums::block_detection::off}, [] {
        ums::cluster other{{.processors = 3}};
        ums::fiber{{.pinned = true},
                   [&] {
                       std::set<std::thread::id> seen;
                       for (unsigned i = 0; i < 3; ++i) {
                           this_fiber::migrate(other, i);
                           const auto there = carrier_now();
                           EXPECT_TRUE(seen.insert(there).second);
                           for (int k = 0; k < 100; ++k) {
                               if (k % 16 == 0) this_fiber::sleep_for(10us);
                               this_fiber::yield();
                               ASSERT_EQ(carrier_now(), there);
                           }
                           this_fiber::migrate(other, i);
                           EXPECT_EQ(carrier_now(), there);
                       }
                   }}
            .join();
    });
}

TEST_F(cluster_test, a_processor_that_there_is_not_is_an_invalid_argument) {
    ums::run({.processors = 1}, [] {
        ums::cluster other{{.processors = 2}};
        EXPECT_EQ(error_of([&] { this_fiber::migrate(other, 2); }), std::errc::invalid_argument);
        other.remove_processor();
        EXPECT_EQ(error_of([&] { this_fiber::migrate(other, 1); }), std::errc::invalid_argument);
        EXPECT_EQ(error_of([&] { this_fiber::migrate(other, ~0u); }), std::errc::invalid_argument);
    });
}

TEST_F(cluster_test, the_processor_may_go_while_a_fiber_is_on_its_way_there) {
    ums::run({.processors = 2}, [] {
        ums::cluster busy{{.processors = 1}};
        std::atomic<bool> stop{false};
        std::vector<ums::fiber> all;
        for (int i = 0; i < 8; ++i)
            all.emplace_back([&] {
                while (!stop) {
                    try {
                        this_fiber::migrate(busy, busy.processors() - 1);
                    } catch (const std::system_error&) {  // It went before.
                    }
                    this_fiber::migrate(ums::cluster::standard());
                }
            });
        for (int i = 0; i < scaled(200, 20); ++i) {
            busy.add_processor();
            this_fiber::yield();
            busy.remove_processor();
        }
        stop = true;
        for (auto& f : all) f.join();
    });
}

// --- Posts and batches ---------------------------------------------------------------------------

TEST_F(cluster_test, what_is_posted_runs_there_and_the_destructor_waits_for_it) {
    ums::run({.processors = 2}, [] {
        std::atomic<int> ran{0};
        const auto here = carrier_now();
        {
            ums::cluster other{{}};
            const auto add = [&](int n, std::unique_ptr<int> more) {
                EXPECT_NE(carrier_now(), here);
                this_fiber::yield();
                ran += n + *more;
            };
            other.post(add, 1, std::make_unique<int>(10));
            other.post({.name = "named", .cluster = &other}, [&] {
                EXPECT_EQ(this_fiber::name(), "named");
                // From inside, too, and at once.
                other.post({.launch = ums::launch::dispatch}, [&] { ++ran; });
                ums::cluster::standard().post([&] { ++ran; });
            });
            std::thread{[&] { other.post([&] { ++ran; }); }}.join();
        }
        while (ran != 14) this_fiber::yield();
    });
}

TEST_F(cluster_test, a_batch_runs_in_order_on_one_processor) {
    for (const auto kind : {ums::policy_kind::work_stealing, ums::policy_kind::global_fifo}) {
        SCOPED_TRACE(ums::name_of(kind));
        ums::run(one_processor, [&] {
            std::vector<int> order;
            std::mutex guards_order;
            {
                ums::cluster other{{.policy = kind}};
                std::vector<std::function<void()>> all;
                for (int i = 0; i < 1000; ++i)
                    all.push_back([&, i] {
                        const std::lock_guard guard{guards_order};
                        order.push_back(i);
                    });
                other.post_each(all);
                EXPECT_TRUE(all[999]);  // Copied.
                other.post_each(std::vector<std::function<void()>>{});
            }
            ASSERT_EQ(order.size(), 1000u);
            EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
        });
    }
}

TEST_F(cluster_test, of_a_container_that_is_moved_in_the_functions_are_moved) {
    struct only_moves {
        std::unique_ptr<int> n;
        std::atomic<int>* sum;
        void operator()() const { *sum += *n; }
    };
    ums::run({.processors = 1}, [] {
        ums::cluster other{{}};
        std::atomic<int> sum{0};
        std::vector<only_moves> all;
        for (int i = 1; i <= 4; ++i) all.push_back({std::make_unique<int>(i), &sum});
        other.post_each(std::move(all));
        while (sum != 10) this_fiber::yield();
    });
}

TEST_F(cluster_test, of_a_range_that_is_not_moved_in_the_functions_are_copied) {
    struct counts {
        std::shared_ptr<int> it;
        void operator()() const {}
    };
    ums::run({.processors = 1}, [] {
        ums::cluster other{{}};
        std::vector<counts> all(3, counts{std::make_shared<int>(0)});
        other.post_each(all);
        other.post_each(std::move(std::as_const(all)));
        // Neither owns what it refers to.
        other.post_each(std::span{all});
        other.post_each(std::views::all(all));
        for (const counts& one : all) EXPECT_NE(one.it, nullptr);
    });
}

// It throws when it is copied for the third time.
struct fragile_function {
    int* copies;
    int* alive;
    explicit fragile_function(int* c, int* a) : copies{c}, alive{a} { ++*alive; }
    fragile_function(const fragile_function& from) : copies{from.copies}, alive{from.alive} {
        if (++*copies == 3) throw std::runtime_error{"the third copy"};
        ++*alive;
    }
    ~fragile_function() { --*alive; }
    void operator()() const { ADD_FAILURE() << "ran"; }
};

TEST_F(cluster_test, of_a_batch_that_fails_nothing_runs_and_nothing_is_left) {
    ums::run({.processors = 1}, [] {
        int copies = 0, alive = 0;
        {
            ums::cluster other{{}};
            const fragile_function one{&copies, &alive};
            const std::array<std::reference_wrapper<const fragile_function>, 4> all{one, one, one,
                                                                                    one};
            EXPECT_THROW(other.post_each(all | std::views::transform(
                                                   [](const auto& f) -> const fragile_function& {
                                                       return f.get();
                                                   })),
                         std::runtime_error);
            EXPECT_EQ(alive, 1);
            EXPECT_EQ(error_of([&] {
                          other.post_each({.launch = ums::launch::dispatch}, std::array{[] {}});
                      }),
                      std::errc::invalid_argument);
            EXPECT_EQ(error_of([&] { other.post({.cluster = &ums::cluster::standard()}, [] {}); }),
                      std::errc::invalid_argument);
        }
    });
}

TEST_F(cluster_test, a_batch_spreads_over_the_processors) {
    ums::run({.processors = 1}, [] {
        std::atomic<int> there{0};
        ums::latch done{2};
        ums::cluster other{{.processors = 2}};
        // Each waits for the other, without giving its processor up.
        other.post_each(std::vector<std::function<void()>>(2, [&] {
            ++there;
            while (there != 2) std::this_thread::yield();
            done.count_down();
        }));
        done.wait();
    });
}

TEST_F(cluster_test, many_are_unparked_at_once_fibers_of_any_cluster_and_threads) {
    ums::run({.processors = 2}, [] {
        ums::cluster first{{}}, second{{.policy = ums::policy_kind::local_mpsc}};
        std::atomic<int> woken{0}, parked{0};
        std::vector<ums::fiber> all;
        std::vector<ums::fiber_ref> refs(61);
        std::thread plain{[&] {
            refs[60] = this_fiber::ref();
            ++parked;
            this_fiber::park();
            ++woken;
        }};
        for (unsigned i = 0; i < 60; ++i) {
            ums::cluster* const home[] = {&first, nullptr, &second};
            all.emplace_back(ums::fiber_options{.pinned = i % 4 == 0, .cluster = home[i / 7 % 3]},
                             [&] {
                                 ++parked;
                                 this_fiber::park();
                                 ++woken;
                             });
            refs[i] = all.back().ref();
        }
        while (parked != 61) this_fiber::yield();
        ums::unpark_all(refs);
        for (auto& f : all) f.join();
        plain.join();
        EXPECT_EQ(woken, 61);
        ums::unpark_all({});
    });
}

// --- Processors that move; the end of a cluster --------------------------------------------------

TEST_F(cluster_test, a_processor_moves_to_another_cluster) {
    ums::run({.processors = 2}, [] {
        ums::cluster first{{.processors = 3}}, second{{}};
        EXPECT_EQ(first.move_processor(second), 1u);
        EXPECT_EQ(first.processors(), 2u);
        EXPECT_EQ(second.processors(), 2u);
        EXPECT_EQ(error_of([&] { first.move_processor(first); }), std::errc::invalid_argument);
        EXPECT_EQ(first.move_processor(ums::cluster::standard()), 2u);
        EXPECT_EQ(error_of([&] { first.move_processor(second); }), std::errc::invalid_argument);
        EXPECT_EQ(first.processors(), 1u);
        EXPECT_EQ(second.processors(), 2u);
        EXPECT_EQ(ums::cluster::standard().move_processor(first), 1u);
    });
}

// Under load, round and round: 10,000 times with TEST_ROUNDS=10000.
TEST_F(cluster_test, processors_move_under_load_and_lose_no_fiber) {
    ums::run({.processors = 2}, [] {
        std::atomic<std::uint64_t> ended{0};
        std::atomic<bool> stop{false};
        std::uint64_t begun = 0;
        {
            ums::cluster first{{.processors = 2}}, second{{.processors = 2}};
            for (int i = 0; i < 16; ++i) {
                ++begun;
                (i % 2 == 0 ? first : second).post([&, i] {
                    std::mt19937 random(static_cast<unsigned>(i));
                    while (!stop.load(std::memory_order_relaxed)) {
                        switch (random() % 4) {
                            case 0:
                                this_fiber::migrate(random() % 2 == 0 ? first : second);
                                break;
                            case 1:
                                this_fiber::sleep_for(std::chrono::microseconds{random() % 50});
                                break;
                            default:
                                this_fiber::yield();
                        }
                    }
                    ++ended;
                });
            }
            const int rounds = sized("TEST_ROUNDS", 200, 20);
            for (int i = 0; i < rounds; ++i) {
                ums::cluster& from = i % 2 == 0 ? first : second;
                from.move_processor(i % 2 == 0 ? second : first);
            }
            EXPECT_EQ(first.processors() + second.processors(), 4u);
            stop = true;
            // None may be about to migrate to a cluster that is gone.
            while (ended.load(std::memory_order_relaxed) != begun) this_fiber::yield();
        }
        EXPECT_EQ(ended, begun);
    });
}

const child_program destroys_its_own{"destroys_its_own", [](const child_arguments&) {
                                         ums::run({.processors = 1}, [] {
                                             auto* own = new ums::cluster{{}};
                                             this_fiber::migrate(*own);
                                             delete own;
                                         });
                                         return 0;
                                     }};
const child_program forgets_one{"forgets_one", [](const child_arguments&) {
                                    ums::run({.processors = 1}, [] { new ums::cluster{{}}; });
                                    return 0;
                                }};

TEST_F(cluster_test, a_cluster_that_its_own_fiber_destroys_ends_the_program_with_a_message) {
    const child_end end = run_child("destroys_its_own");
    EXPECT_EQ(end.signal, SIGABRT) << end;
    EXPECT_NE(end.err.find("a cluster was destroyed by one of its own fibers"), std::string::npos)
        << end;
}

TEST_F(cluster_test, a_cluster_that_outlives_the_runtime_ends_the_program_with_a_message) {
    const child_end end = run_child("forgets_one");
    EXPECT_EQ(end.signal, SIGABRT) << end;
    EXPECT_NE(end.err.find("the runtime was stopped before a cluster was destroyed"),
              std::string::npos)
        << end;
}

// --- On certain CPUs -----------------------------------------------------------------------------

// Those that the calling kernel thread may use.
[[gnu::noinline]] std::set<int> cpus_now() {
    cpu_set_t set;
    std::set<int> all;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return all;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        if (CPU_ISSET(static_cast<unsigned>(cpu), &set)) all.insert(cpu);
    return all;
}

TEST_F(cluster_test, it_keeps_to_the_cpus_it_was_given) {
    const std::set<int> usable = cpus_now();
    const int last = *usable.rbegin();
    ums::run({.processors = 1}, [&] {
        ums::cluster one{{.processors = 2, .cpus = std::to_string(last)}};
        ums::fiber{{.cluster = &one},
                   [&] {
                       EXPECT_EQ(cpus_now(), std::set<int>{last});
                       this_fiber::migrate(one, 1);
                       EXPECT_EQ(cpus_now(), std::set<int>{last});
                   }}
            .join();
        // One CPU each, of those.
        std::string list;
        for (const int cpu : usable) list += (list.empty() ? "" : ",") + std::to_string(cpu);
        ums::cluster each{
            {.processors = static_cast<unsigned>(usable.size()), .pin = true, .cpus = list}};
        std::set<int> seen;
        for (unsigned i = 0; i < usable.size(); ++i) {
            this_fiber::migrate(each, i);
            seen.merge(cpus_now());
            EXPECT_EQ(cpus_now().size(), 1u);
        }
        EXPECT_EQ(seen, usable);
        this_fiber::migrate(ums::cluster::standard());
        ums::cluster near{{.processors = 1, .cpus = "auto"}};
        ums::fiber{{.cluster = &near}, [] { EXPECT_EQ(cpus_now().size(), 1u); }}.join();
    });
}

TEST_F(cluster_test, cpus_that_cannot_be_had_are_refused) {
    ums::run({.processors = 1}, [] {
        const auto error_with = [](const char* cpus) {
            return error_of([cpus] { ums::cluster{{.cpus = cpus}}; });
        };
        for (const char* const wrong :
             {"0-", "-1", "1,,2", "3-1", "node:", "node:x", "all", "0 1", "4096"})
            EXPECT_EQ(error_with(wrong), std::errc::invalid_argument) << wrong;
        EXPECT_EQ(error_with("1023"), std::errc::operation_not_supported);
        EXPECT_EQ(error_with("node:999"), std::errc::operation_not_supported);
    });
}

TEST_F(cluster_test, who_waits_for_a_fiber_of_another_cluster_may_destroy_that_at_once) {
    ums::run({.processors = 2}, [] {
        for (int i = 0; i < scaled(300, 30); ++i) {
            ums::cluster brief{{}};
            ums::fiber{{.cluster = &brief}, [] {}}.join();
        }
    });
}

}  // namespace
