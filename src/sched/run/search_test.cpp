// SPDX-License-Identifier: MIT
// variants: migrate fifo nomembarrier nosync
//
// No fiber that could run waits while a processor is idle: each test computes on one processor
// until something has happened that only another processor can do. If it does not happen, the test
// never ends.
#include "sched/run/search.hpp"

#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "sched/run/cluster.hpp"
#include "sched/run/here.hpp"
#include "support/conservation.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"
#include "support/variant.hpp"
#include "ums/cluster.hpp"
#include "ums/run.hpp"
#include "ums/semaphore.hpp"
#include "ums/stats.hpp"
#include "ums/this_fiber.hpp"

namespace {

using namespace std::chrono_literals;
using ums::fiber;
using ums::wake_reason;
namespace this_fiber = ums::this_fiber;

constexpr ums::fiber_options now{.launch = ums::launch::dispatch};

// With two processors one looks for all; with more they get in each other's way. (An environment
// that sets another number sets it for all.)
class search_test : public ::testing::TestWithParam<unsigned> {
protected:
    [[nodiscard]] static ums::options options() { return {.processors = GetParam()}; }

private:
    conservation nothing_left_;
};

// Computes without any switch. A machine that has fewer CPUs than carriers gets a hint.
template <class F>
void compute_until(F done) {
    while (!done()) std::this_thread::yield();
}
void compute_until(const std::atomic<bool>& flag) {
    compute_until([&] { return flag.load(); });
}

const int rounds = by_variant(scaled(200, 20), scaled(60, 20));

TEST_P(search_test, a_new_fiber_runs_while_its_creator_computes) {
    ums::run(options(), [] {
        for (int i = 0; i < rounds; ++i) {
            std::atomic<bool> ran = false;
            fiber f{[&] { ran = true; }};
            compute_until(ran);
            f.join();
        }
    });
}

TEST_P(search_test, an_unparked_fiber_runs_while_its_waker_computes) {
    ums::run(options(), [] {
        for (int i = 0; i < rounds; ++i) {
            std::atomic<bool> ran = false;
            fiber f{now, [&] {
                        this_fiber::park();
                        ran = true;
                    }};
            f.ref().unpark();
            compute_until(ran);
            f.join();
        }
    });
}

TEST_P(search_test, a_new_fiber_runs_while_its_creator_computes_and_timers_keep_coming) {
    ums::options all = options();
    all.time_slice_us = 0;  // Nothing but another processor helps the new fiber.
    ums::run(all, [] {
        std::atomic<bool> stop = false;
        fiber sleeper{now, [&] {
                          while (!stop) this_fiber::sleep_for(10us);
                      }};
        for (int i = 0; i < rounds; ++i) {
            std::atomic<bool> ran = false;
            fiber f{[&] { ran = true; }};
            compute_until(ran);
            f.join();
        }
        stop = true;
        sleeper.join();
    });
}

TEST_P(search_test, many_unparked_fibers_run_while_their_waker_computes) {
    ums::run(options(), [] {
        std::vector<fiber> all;
        std::atomic<int> ran = 0;
        std::atomic<bool> stop = false;
        for (int i = 0; i < 20; ++i)
            all.emplace_back(now, [&] {
                for (;;) {
                    this_fiber::park();
                    if (stop) return;
                    ++ran;
                }
            });
        for (int i = 0; i < rounds; ++i) {
            const int before = ran;
            for (fiber& f : all) f.ref().unpark();
            compute_until([&] { return ran >= before + 1; });
            while (ran < (i + 1) * 20) this_fiber::yield();
        }
        stop = true;
        for (fiber& f : all) f.ref().unpark();
        for (fiber& f : all) f.join();
    });
}

TEST_P(search_test, fibers_that_compute_until_all_have_started_all_start) {
    const auto seed = test_seed();
    ums::runtime started{options()};
    const int processors = static_cast<int>(ums::cluster::standard().processors());
    std::minstd_rand random{static_cast<unsigned>(seed)};
    for (int i = 0; i < rounds; ++i) {
        // As many fibers as there are processors, from outside or from a fiber, all at once or one
        // by one.
        std::atomic<int> here = 0;
        auto meet = [&] {
            ++here;
            compute_until([&] { return here >= processors; });
        };
        std::vector<fiber> all;
        auto make = [&, kind = random() % 3] {
            for (int n = 0; n < processors; ++n) {
                all.emplace_back(meet);
                if (kind == 1) this_fiber::yield();
            }
        };
        if (random() % 2 == 0)
            make();
        else
            fiber{make}.join();
        for (fiber& f : all) f.join();
    }
}

TEST_P(search_test, fibers_unparked_from_outside_meet) {
    const auto seed = test_seed();
    ums::runtime started{options()};
    const int processors = static_cast<int>(ums::cluster::standard().processors());
    std::minstd_rand random{static_cast<unsigned>(seed)};
    std::atomic<int> here = 0, parked = 0;
    std::vector<fiber> all;
    for (int n = 0; n < processors; ++n)
        all.emplace_back([&] {
            for (int i = 0; i < rounds; ++i) {
                ++parked;
                this_fiber::park();
                ++here;
                compute_until([&, i] { return here >= (i + 1) * processors; });
            }
        });
    for (int i = 0; i < rounds; ++i) {
        while (parked < (i + 1) * processors) std::this_thread::yield();
        // By then most have completed their park, and the processors are idle.
        if (random() % 2 == 0)
            for (auto y = random() % 200; y > 0; --y) std::this_thread::yield();
        for (fiber& f : all) {
            f.ref().unpark();
            if (random() % 2 == 0) std::this_thread::yield();
        }
    }
    for (fiber& f : all) f.join();
    EXPECT_EQ(here, rounds * processors);
}

// A thread that makes several ready wakes one processor, which finds nobody running besides itself:
// it is the one to tell the next, of a policy's queue, too.
TEST_P(search_test, fibers_that_a_policy_gets_at_once_meet) {
    ums::options how = options();
    how.policy = ums::policy_kind::global_fifo;
    // Nobody else tells them: no time slices, no look at whether all stand still.
    how.block = ums::block_detection::off;
    how.deadlock = ums::deadlock_check::off;
    ums::runtime started{how};
    const unsigned processors = ums::cluster::standard().processors();
    const unsigned meetings = static_cast<unsigned>(rounds) / 4;
    std::atomic<const ums::sched::cluster*> home = nullptr;
    std::atomic<unsigned> here = 0;
    ums::counting_semaphore<> go{0};
    std::vector<fiber> all;
    for (unsigned n = 0; n < processors; ++n)
        all.emplace_back([&] {
            home = ums::sched::here{}.self->home_cluster.get();
            for (unsigned i = 0; i < meetings; ++i) {
                go.acquire();
                ++here;
                compute_until([&] { return here >= (i + 1) * processors; });
            }
        });
    for (unsigned i = 0; i < meetings; ++i) {
        compute_until([&] {
            return here == i * processors && home != nullptr &&
                   home.load()->idle.look().idle == processors;
        });
        go.release(processors);
    }
    for (fiber& f : all) f.join();
}

// --- deadlines ---

TEST_P(search_test, a_sleeper_wakes_while_its_processor_computes) {
    ums::run(options(), [] {
        for (int i = 0; i < rounds / 4; ++i) {
            std::atomic<bool> woken = false;
            fiber f{now, [&] {
                        this_fiber::sleep_for(100us);
                        woken = true;
                    }};
            compute_until(woken);
            f.join();
        }
    });
}

TEST_P(search_test, a_sleeper_wakes_while_a_pinned_fiber_computes) {
    ums::run(options(), [] {
        fiber{{.pinned = true},
              [] {
                  for (int i = 0; i < rounds / 4; ++i) {
                      std::atomic<bool> woken = false;
                      fiber f{now, [&] {
                                  this_fiber::sleep_for(100us);
                                  woken = true;
                              }};
                      compute_until(woken);
                      f.join();
                  }
              }}
            .join();
    });
}

// The deadline comes while the fiber is on its way to park, so the park ends before it has begun.
TEST_P(search_test,
       one_whose_deadline_passes_on_its_way_to_park_runs_while_a_pinned_fiber_computes) {
    ums::run(options(), [] {
        fiber{{.pinned = true},
              [] {
                  for (int i = 0; i < rounds; ++i) {
                      std::atomic<bool> woken = false;
                      fiber f{now, [&] {
                                  this_fiber::sleep_for(10ns * (i % 50));
                                  woken = true;
                              }};
                      compute_until(woken);
                      f.join();
                  }
              }}
            .join();
    });
}

// The sleeper leaves, then the fiber that computes comes from somewhere else.
TEST_P(search_test, a_sleeper_wakes_while_what_came_after_it_computes) {
    const auto seed = test_seed();
    ums::runtime started{options()};
    std::minstd_rand random{static_cast<unsigned>(seed)};
    const int processors = static_cast<int>(ums::cluster::standard().processors());
    for (int i = 0; i < rounds / 2; ++i) {
        std::atomic<int> asleep = 0, woken = 0;
        std::vector<fiber> sleepers, computers;
        for (int n = 0; n < 3; ++n)
            sleepers.emplace_back([&, d = std::chrono::microseconds{random() % 500}] {
                ++asleep;
                this_fiber::sleep_for(d);
                ++woken;
            });
        if (random() % 2 == 0)
            while (asleep < 3) std::this_thread::yield();
        for (auto y = random() % 50; y > 0; --y) std::this_thread::yield();
        for (int n = 0; n + 1 < processors; ++n)
            computers.emplace_back(ums::fiber_options{.pinned = random() % 2 == 0},
                                   [&] { compute_until([&] { return woken == 3; }); });
        for (fiber& f : sleepers) f.join();
        for (fiber& f : computers) f.join();
    }
}

// A processor that stops just then fires them all itself, before another that watches over it has
// woken.
TEST_P(search_test, sleepers_of_one_deadline_meet) {
    ums::run(options(), [] {
        for (int i = 0; i < rounds; ++i) {
            std::atomic<int> here = 0;
            std::vector<fiber> all;
            const auto deadline = std::chrono::steady_clock::now() + 200us;
            for (int n = 0; n < 2; ++n)
                all.emplace_back(now, [&] {
                    this_fiber::sleep_until(deadline);
                    ++here;
                    compute_until([&] { return here == 2; });
                });
            compute_until([&] { return std::chrono::steady_clock::now() >= deadline; });
            for (fiber& f : all) f.join();
        }
    });
}

TEST_P(search_test, a_deadline_passes_while_its_processor_computes) {
    ums::run(options(), [] {
        for (int i = 0; i < rounds / 4; ++i) {
            std::atomic<bool> expired = false;
            fiber f{now, [&] {
                        EXPECT_EQ(this_fiber::park_for(50us), wake_reason::deadline_passed);
                        expired = true;
                    }};
            compute_until(expired);
            f.join();
        }
    });
}

// --- all together ---

// A chain: each link is started in some way by the one before it, which then computes until the
// link after has run.
TEST_P(search_test, chains_of_any_kind_come_to_their_end) {
    const auto seed = test_seed();
    ums::run(options(), [seed] {
        std::minstd_rand random{static_cast<unsigned>(seed)};
        for (int i = 0; i < rounds; ++i) {
            std::atomic<bool> ran = false;
            fiber parked{now, [&] {
                             this_fiber::park();
                             ran = true;
                         }};
            auto unpark = [&] { parked.ref().unpark(); };
            fiber link;
            switch (random() % 5) {
                case 0:
                    unpark();
                    break;
                case 1:
                    link = fiber{unpark};
                    break;
                case 2:
                    link = fiber{now, unpark};
                    break;
                case 3:
                    link = fiber{[&, d = std::chrono::microseconds{random() % 100}] {
                        this_fiber::sleep_for(d);
                        unpark();
                    }};
                    break;
                case 4:
                    link = fiber{[&] {
                        fiber{[&] { this_fiber::yield(); }}.join();
                        unpark();
                    }};
                    break;
            }
            compute_until(ran);
            if (link.joinable()) link.join();
            parked.join();
        }
    });
}

// Pinned fibers cannot be helped by others, but they must not hold up those that can.
TEST_P(search_test, pinned_fibers_share_a_processor_with_ones_that_are_stolen) {
    // No detector: a hand-off would let the pinned ones run early.
    ums::run({.processors = GetParam(), .block = ums::block_detection::off}, [] {
        for (int i = 0; i < rounds / 4; ++i) {
            std::atomic<int> stolen = 0;
            std::vector<fiber> pinned, free;
            fiber hog{{.pinned = true}, [&] {
                          for (int n = 0; n < 4; ++n) {
                              pinned.emplace_back(ums::fiber_options{.pinned = true},
                                                  [&] { EXPECT_EQ(stolen, 4); });
                              free.emplace_back([&] { ++stolen; });
                          }
                          compute_until([&] { return stolen == 4; });
                      }};
            hog.join();
            for (fiber& f : pinned) f.join();
            for (fiber& f : free) f.join();
        }
    });
}

// What one processor can do, the others sleep through. A sleep ends at one processor, which then
// waits once, and may wake a few times for the detector or an interrupted run; when each event
// alerted another processor, that one waited as often.
TEST_P(search_test, what_one_processor_can_do_wakes_no_other) {
    ums::run(options(), [] {
        const ums::sched::cluster& home = *ums::sched::here{}.self->home_cluster.get();
        if (home.needs_watcher()) GTEST_SKIP() << "without a detector, and under a policy, it does";
        constexpr unsigned sleeps = 200;
        const std::uint64_t before = ums::stats().idle_waits;
        for (unsigned i = 0; i < sleeps; ++i) this_fiber::sleep_for(1ms);
        EXPECT_LT(ums::stats().idle_waits - before, sleeps * 3 / 2);
    });
}

// Each wait ends only when the other side has got there.
TEST_P(search_test, the_watcher_looks_only_while_something_waits) {
    ums::options how = options();
    how.block = ums::block_detection::off;  // Then there is always a watcher.
    ums::run(how, [] {
        const ums::sched::cluster& home = *ums::sched::here{}.self->home_cluster.get();
        for (int i = 0; i < rounds / 4; ++i) {
            std::atomic<bool> ran = false;
            fiber parked{now, [&] {
                             this_fiber::park();
                             ran = true;
                         }};
            compute_until([&] {
                return home.watching.load(ums::base::relaxed) < ums::sched::cluster::samples;
            });
            parked.ref().unpark();
            compute_until(ran);
            parked.join();
        }
    });
}

TEST_P(search_test, the_watcher_that_rests_is_told_of_a_deadline) {
    ums::options how = options();
    how.block = ums::block_detection::off;  // Then nobody else looks.
    ums::run(how, [] {
        const ums::sched::cluster& home = *ums::sched::here{}.self->home_cluster.get();
        for (int i = 0; i < rounds / 4; ++i) {
            compute_until([&] {
                return home.watching.load(ums::base::relaxed) < ums::sched::cluster::samples;
            });
            std::atomic<bool> woke = false;
            fiber sleeper{now, [&] {
                              this_fiber::sleep_for(200us);
                              woke = true;
                          }};
            compute_until(woke);
            sleeper.join();
        }
    });
}

INSTANTIATE_TEST_SUITE_P(processors, search_test, ::testing::Values(2u, 3u, 4u),
                         ::testing::PrintToStringParamName());

}  // namespace
