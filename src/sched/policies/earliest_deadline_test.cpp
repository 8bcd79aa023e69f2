// SPDX-License-Identifier: MIT
#include "sched/policies/earliest_deadline.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "sched/policies/global_fifo.hpp"
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

class earliest_deadline_test : public conserving_test {};

// In simulated time, which a fiber's unit of work advances by one.
deadline at(std::int64_t t) { return deadline{std::chrono::nanoseconds{t}}; }

// A task does `cost` units of work in each `period`, beginning with the first.
struct task {
    std::int64_t period, cost;
    std::int64_t released = 0;  // When its next job could begin.
    int jobs = 0, missed = 0;
    fiber runs = {};
};

// The share of the processor that the tasks need.
double load_of(const std::vector<task>& all) {
    double sum = 0;
    for (const task& t : all) sum += static_cast<double>(t.cost) / static_cast<double>(t.period);
    return sum;
}

// Random tasks with a load of at most `most`, and not much less.
std::vector<task> random_tasks(std::mt19937_64& random, double most) {
    std::vector<task> all;
    double left = most;
    while (left > 0.01 && all.size() < 12) {
        const auto period = std::uniform_int_distribution<std::int64_t>{4, 200}(random);
        const double share = std::uniform_real_distribution{0.0, left}(random);
        const auto cost = std::max<std::int64_t>(
            1, static_cast<std::int64_t>(share * static_cast<double>(period)));
        if (static_cast<double>(cost) / static_cast<double>(period) > left) continue;
        all.push_back({.period = period, .cost = cost});
        left = most - load_of(all);
    }
    return all;
}

// Runs until `end`. Returns how many jobs missed their deadlines.
int misses(std::vector<task>& all, std::int64_t end, std::unique_ptr<policy> order) {
    simulated = 1;
    run(one_processor, [&] {
        const cluster_options with{.name = "simulated",
                                   .make_policy = [&] { return std::move(order); },
                                   .time_slice_us = 0};
        cluster own{with};
        // One unit passes; jobs that are due are released.
        const auto pass = [&] {
            ++simulated;
            for (task& t : all)
                if (t.runs.joinable() && t.released == simulated) t.runs.ref().unpark();
        };
        latch done{static_cast<std::ptrdiff_t>(all.size())};
        const auto work = [&](task& t) {
            while (simulated < end) {
                const std::int64_t due = t.released + t.period;
                this_fiber::ref().set_deadline(at(due));
                while (simulated < t.released) this_fiber::park();
                this_fiber::yield();  // Takes its place among the others by the new deadline.
                for (std::int64_t i = 0; i < t.cost; ++i) {
                    pass();
                    this_fiber::yield();
                }
                ++t.jobs;
                if (simulated > due) ++t.missed;
                t.released = due;
            }
            done.count_down();
        };
        for (task& t : all) t.released = simulated;
        std::atomic<bool> stop{false};
        fiber starts{{.cluster = &own, .deadline = at(1)}, [&] {
                         for (task& t : all)
                             t.runs = fiber{{.deadline = at(1 + t.period)}, work, std::ref(t)};
                     }};
        starts.join();
        // Time also passes while no task has anything to do.
        fiber idle{{.cluster = &own}, [&] {
                       while (!stop) {
                           pass();
                           this_fiber::yield();
                       }
                   }};
        // Until then pass() looks at the handles.
        done.wait();
        stop = true;
        idle.join();
        for (task& t : all) t.runs.join();
    });
    int sum = 0;
    for (const task& t : all) sum += t.missed;
    return sum;
}

// In turn, the first of them has done 4 of its units when it is due.
std::vector<task> missed_in_turn() {
    std::vector<task> all;
    all.push_back({.period = 10, .cost = 5});
    for (int i = 0; i < 2; ++i) all.push_back({.period = 40, .cost = 10});
    return all;
}

TEST_F(earliest_deadline_test, feasible_task_sets_meet_every_deadline) {
    std::mt19937_64 random{test_seed()};
    int missed_by_fifo = 0, jobs = 0;
    for (int i = 0; i < scaled(20, 4); ++i) {
        const auto tasks = i == 0 ? missed_in_turn() : random_tasks(random, i % 2 == 0 ? 0.9 : 1.0);
        const auto run_them = [&](std::unique_ptr<policy> order) {
            std::vector<task> all;
            for (const task& t : tasks) all.push_back({.period = t.period, .cost = t.cost});
            const int missed = misses(all, scaled(20'000, 2'000), std::move(order));
            for (const task& t : all) jobs += t.jobs;
            return missed;
        };
        EXPECT_EQ(run_them(std::make_unique<sched::earliest_deadline_policy>(&read_simulated)), 0)
            << tasks.size() << " tasks, load " << load_of(tasks);
        missed_by_fifo += run_them(std::make_unique<sched::global_fifo_policy>());
    }
    EXPECT_GT(missed_by_fifo, 0);
    EXPECT_GT(jobs, 500);
}

TEST_F(earliest_deadline_test, equal_deadlines_run_in_turn_and_none_is_the_last) {
    run(one_processor, [] {
        cluster own{{.policy = policy_kind::earliest_deadline_first, .time_slice_us = 0}};
        fiber{{.cluster = &own, .deadline = at(1)},
              [] {
                  std::vector<int> order;
                  std::vector<fiber> all;
                  const deadline far = deadline_after(std::chrono::milliseconds{500});
                  all.emplace_back([&] { order.push_back(9); });
                  for (int i = 0; i < 4; ++i)
                      all.emplace_back(fiber_options{.deadline = far},
                                       [&order, i] { order.push_back(i); });
                  for (fiber& f : all) f.join();
                  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 9}));
              }}
            .join();
    });
}

// A fiber whose deadline is long past cannot hold up a fiber without one for ever.
TEST_F(earliest_deadline_test, nobody_waits_longer_than_until_it_is_due) {
    simulated = 1;
    run(one_processor, [] {
        cluster own{
            {.make_policy =
                 [] { return std::make_unique<sched::earliest_deadline_policy>(&read_simulated); },
             .time_slice_us = 0}};
        bool stop = false;
        std::int64_t ran_at = 0;
        fiber overdue{{.cluster = &own, .deadline = at(1)}, [&] {
                          fiber patient{{}, [&] {
                                            ran_at = simulated;
                                            stop = true;
                                        }};
                          while (!stop) {
                              simulated += sched::earliest_deadline_policy::patience / 1000;
                              this_fiber::yield();
                          }
                          patient.join();
                      }};
        overdue.join();
        EXPECT_GE(ran_at, sched::earliest_deadline_policy::patience);
        EXPECT_LE(ran_at, sched::earliest_deadline_policy::patience / 1000 * 1002);
    });
}

}  // namespace

}  // namespace ums
