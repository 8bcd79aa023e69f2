// SPDX-License-Identifier: MIT

// Each policy's bound on how long a ready fiber waits (docs/policies.md), counted in turns. All
// fibers are ready all the time, and each turn takes one unit of simulated time.

#include <algorithm>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "sched/policies/built_in.hpp"
#include "sched/policies/earliest_deadline.hpp"
#include "sched/policies/fair_share.hpp"
#include "sched/policies/urgent_first.hpp"
#include "support/conservation.hpp"
#include "support/one_processor.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"
#include "support/simulated_time.hpp"
#include "ums/fiber.hpp"
#include "ums/latch.hpp"
#include "ums/run.hpp"
#include "ums/this_fiber.hpp"

namespace ums {

namespace {

using sched::earliest_deadline_policy;
using sched::fair_share_policy;
using sched::urgent_first_policy;

class liveness_test : public conserving_test {};

std::unique_ptr<policy> make_simulated(policy_kind kind) {
    if (kind == policy_kind::earliest_deadline_first)
        return std::make_unique<earliest_deadline_policy>(&read_simulated);
    if (kind == policy_kind::fair_share)
        return std::make_unique<fair_share_policy>(&read_simulated);
    return make_policy(kind);
}

constexpr unsigned count = 40;

// Runs with `processors` that take their turns one after the other. Returns the longest wait, in
// turns, over what `bound` allows for that fiber.
double longest_wait(policy_kind kind, unsigned processors, std::vector<fiber>& all,
                    const std::function<double(fiber_ref)>& bound, std::mt19937_64& random) {
    simulated = 1;
    const auto order = make_simulated(kind);
    for (unsigned p = 0; p < processors; ++p) order->attach(p);
    std::vector<std::int64_t> since(all.size(), 0);
    const auto index = [&](fiber_ref f) {
        return static_cast<std::size_t>(
            std::find_if(all.begin(), all.end(), [&](const fiber& one) { return one.ref() == f; }) -
            all.begin());
    };
    std::vector<fiber_ref> running(processors);
    double longest = 0;
    const auto set_deadline = [&](fiber_ref f) {
        const auto ahead = static_cast<std::int64_t>(random() % 200);
        f.set_deadline(deadline{std::chrono::nanoseconds{simulated + ahead}});
    };
    for (const fiber& f : all) {
        set_deadline(f.ref());
        order->ready(f.ref(), policy::outside);
    }
    for (std::int64_t turn = 0; turn < scaled(40'000, 4'000); ++turn) {
        const auto p = static_cast<unsigned>(turn % processors);
        ++simulated;
        const fiber_ref before = running[p];
        fiber_ref next = before ? order->instead_of(before, p) : order->next(p);
        for (unsigned victim = 0; !next && !before && victim < processors; ++victim)
            next = order->steal(p, victim);
        if (!next) continue;
        longest = std::max(longest, static_cast<double>(turn - since[index(next)]) / bound(next));
        running[p] = next;
        if (!before) continue;
        set_deadline(before);
        since[index(before)] = turn;
        order->ready(before, p);
    }
    return longest;
}

TEST_F(liveness_test, no_ready_fiber_waits_longer_than_its_policy_says) {
    std::mt19937_64 random{test_seed()};
    run(one_processor, [&] {
        std::vector<fiber> all;
        latch go{1};
        double weights = 0;
        for (unsigned i = 0; i < count; ++i) {
            const auto weight = static_cast<unsigned>(50 + random() % 200);
            weights += weight;
            all.emplace_back(
                fiber_options{.priority = static_cast<int>(i % 8) - 4, .weight = weight},
                [&] { go.wait(); });
        }
        // All of them wait, so their links are unused.
        for (int i = 0; i < 10; ++i) this_fiber::yield();
        for (unsigned processors = 1; processors <= 3; ++processors)
            for (const auto& one : sched::built_in_policies()) {
                if (one.kind == policy_kind::work_stealing) continue;  // This one has no object.
                SCOPED_TRACE(::testing::Message()
                             << one.name << ", " << processors << " processors");
                const double n = count;
                const auto bound = [&](fiber_ref f) -> double {
                    switch (one.kind) {
                        case policy_kind::priority:
                            return (n / 8 + 1) * (urgent_first_policy::budget + 8);
                        case policy_kind::earliest_deadline_first:
                            return 200 + n;
                        case policy_kind::fair_share:
                            return weights / f.weight() * processors + n;
                        case policy_kind::global_fifo:
                            return n + 64.0 * processors;
                        default:
                            return n * processors;
                    }
                };
                const double longest = longest_wait(one.kind, processors, all, bound, random);
                EXPECT_GT(longest, 0);
                EXPECT_LE(longest, 1);
            }
        go.count_down();
        for (fiber& f : all) f.join();
    });
}

}  // namespace

}  // namespace ums
