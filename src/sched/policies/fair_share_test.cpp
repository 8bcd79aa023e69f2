// SPDX-License-Identifier: MIT
#include "sched/policies/fair_share.hpp"

#include <atomic>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "support/conservation.hpp"
#include "support/one_processor.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"
#include "support/simulated_time.hpp"
#include "ums/cluster.hpp"
#include "ums/fiber.hpp"
#include "ums/latch.hpp"
#include "ums/run.hpp"
#include "ums/this_fiber.hpp"

namespace ums {

namespace {

class fair_share_test : public conserving_test {};

void in_simulated_time(const auto& function) {
    simulated = 1;
    run(one_processor, [&] {
        cluster own{{.make_policy =
                         [] { return std::make_unique<sched::fair_share_policy>(&read_simulated); },
                     .time_slice_us = 0}};
        function(own);
    });
}

const std::int64_t length = scaled(2'000'000, 100'000);

struct worker {
    unsigned weight = usual_weight, group = 0;
    std::int64_t longest = 10;  // It works from one unit up to this many between two yields.
    std::int64_t parks_for = 0;
    std::int64_t ran = 0;
    fiber runs = {};
};

// Each worker works until the end.
void run_all(cluster& own, std::vector<worker>& all, std::mt19937_64& random) {
    fiber{{.cluster = &own},
          [&] {
              for (worker& w : all)
                  w.runs = fiber{{.weight = w.weight, .group = w.group}, [&] {
                                     while (simulated < length) {
                                         const auto n = std::uniform_int_distribution{
                                             std::int64_t{1}, w.longest}(random);
                                         simulated += n;
                                         w.ran += n;
                                         this_fiber::yield();
                                     }
                                 }};
          }}
        .join();
    for (worker& w : all) w.runs.join();
}

double share(std::int64_t part) { return static_cast<double>(part) / static_cast<double>(length); }

TEST_F(fair_share_test, fibers_run_for_their_weight_whatever_their_stretches) {
    std::mt19937_64 random{test_seed()};
    in_simulated_time([&](cluster& own) {
        std::vector<worker> all(6);
        const unsigned weights[] = {100, 200, 300, 50, 1000, 350};
        for (std::size_t i = 0; i < all.size(); ++i) {
            all[i].weight = weights[i];
            all[i].longest = i % 2 == 0 ? 3 : 40;
        }
        run_all(own, all, random);
        for (const worker& w : all)
            EXPECT_NEAR(share(w.ran) / (w.weight / 2000.0), 1, 0.03) << w.weight;
    });
}

TEST_F(fair_share_test, groups_share_by_their_weight_however_many_fibers_they_have) {
    std::mt19937_64 random{test_seed()};
    in_simulated_time([&](cluster& own) {
        own.set_group_weight(1, 100);
        own.set_group_weight(2, 300);
        std::vector<worker> all(21);
        for (std::size_t i = 0; i < 20; ++i) all[i].group = 1;
        all[0].weight = 500;  // Of the 19 * 100 + 500 of its group.
        all[20].group = 2;
        run_all(own, all, random);
        std::int64_t first = 0;
        for (std::size_t i = 0; i < 20; ++i) first += all[i].ran;
        EXPECT_NEAR(share(first) / 0.25, 1, 0.03);
        EXPECT_NEAR(share(all[20].ran) / 0.75, 1, 0.03);
        EXPECT_NEAR(static_cast<double>(all[0].ran) / static_cast<double>(first) / (500.0 / 2400),
                    1, 0.03);
    });
}

// A fiber that slept has no claim to what it did not use.
TEST_F(fair_share_test, time_off_is_not_saved_up) {
    in_simulated_time([&](cluster& own) {
        std::int64_t others = 0, late = 0;
        fiber sleeper{{.cluster = &own}, [&] {
                          this_fiber::park();
                          const std::int64_t before = others;
                          for (int i = 0; i < 1000; ++i) {
                              ++simulated;
                              ++late;
                              this_fiber::yield();
                          }
                          EXPECT_NEAR(static_cast<double>(others - before), 1000, 10);
                      }};
        std::atomic<bool> stop{false};
        fiber busy{{.cluster = &own}, [&] {
                       while (!stop) {
                           ++simulated;
                           if (++others == 100'000) sleeper.ref().unpark();
                           this_fiber::yield();
                       }
                   }};
        sleeper.join();
        stop = true;
        busy.join();
        EXPECT_EQ(late, 1000);
    });
}

// A group that had no fiber, or a fiber that was in another group, begins where the running one is.
TEST_F(fair_share_test, a_change_of_group_brings_no_credit_and_no_debt) {
    constexpr std::int64_t before = 50'000, after = 1'000;
    in_simulated_time([&](cluster& own) {
        std::int64_t ran[3] = {}, then[3] = {};
        fiber runs[3];
        latch done{3};
        bool stop = false;
        const auto work = [&](int i, auto each_turn) {
            while (!stop) {
                ++simulated;
                ++ran[i];
                each_turn();
                this_fiber::yield();
            }
            done.count_down();
        };
        const auto nothing = [] {};
        fiber{{.cluster = &own},
              [&] {
                  runs[1] = fiber{[&] { work(1, nothing); }};
                  runs[0] = fiber{[&] {
                      work(0, [&] {
                          if (ran[0] == before) {
                              then[1] = ran[1];
                              this_fiber::ref().set_group(1);
                          } else if (ran[0] == before + after) {
                              // Each of the two groups has had as much as the other.
                              EXPECT_NEAR(static_cast<double>(ran[1] - then[1]), after, 10);
                              runs[2] = fiber{{.group = 2}, [&] { work(2, nothing); }};
                              this_fiber::ref().set_group(2);
                              then[0] = ran[0];
                          } else if (ran[0] > before + after && ran[1] >= before + 3 * after) {
                              stop = true;
                              then[2] = ran[2];
                          }
                      });
                  }};
              }}
            .join();
        done.wait();
        for (fiber& f : runs) f.join();
        EXPECT_NEAR(static_cast<double>(ran[0] - then[0]), static_cast<double>(then[2]), 10);
        EXPECT_GT(then[2], after / 2);
    });
}

// A fiber that waits after each stretch is charged for it like one that yields.
TEST_F(fair_share_test, a_stretch_that_ends_in_a_wait_counts) {
    in_simulated_time([&](cluster& own) {
        std::int64_t ran[2] = {}, alone = 0;
        fiber pair[2], loner;
        latch done{2};
        const auto work = [&](int i) {
            while (simulated < length) {
                simulated += 5;
                ran[i] += 5;
                pair[1 - i].ref().unpark();
                this_fiber::park();
            }
            pair[1 - i].ref().unpark();
            done.count_down();
        };
        // None of them runs before all are there.
        fiber{{.cluster = &own},
              [&] {
                  for (int i = 0; i < 2; ++i) pair[i] = fiber{{.group = 1}, work, i};
                  loner = fiber{{.group = 2}, [&] {
                                    while (simulated < length) {
                                        simulated += 5;
                                        alone += 5;
                                        pair[0].ref().unpark();
                                        this_fiber::yield();
                                    }
                                }};
              }}
            .join();
        loner.join();
        for (fiber& f : pair) f.ref().unpark();
        done.wait();  // Until then they look at each other's handles.
        for (fiber& f : pair) f.join();
        EXPECT_NEAR(share(ran[0] + ran[1]) / 0.5, 1, 0.03);
        EXPECT_NEAR(share(alone) / 0.5, 1, 0.03);
    });
}

}  // namespace

}  // namespace ums
