// SPDX-License-Identifier: MIT
// variants: futex
//
// Workers that run, yield and end.

#include <cerrno>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "support/conservation.hpp"
#include "support/round_robin.hpp"
#include "support/scale.hpp"

namespace {

class yield_test : public conserving_test {};

TEST_F(yield_test, a_worker_runs_when_it_is_executed_and_ends) {
    completion_list list;
    int ran = 0;
    test_worker w{list, [&] { ++ran; return 42; }};
    round_robin s{list, 1};
    s.run();
    EXPECT_EQ(ran, 1);
    EXPECT_EQ(w.join(), 42);
    EXPECT_EQ(s.startups, 1);
    EXPECT_EQ(s.blocked, 1);
}

TEST_F(yield_test, workers_yield_in_turn) {
    completion_list list;
    std::vector<int> order;
    test_worker a{list, [&] { for (int i = 0; i < 3; ++i) { order.push_back(i); ums_worker_yield(nullptr); } }};
    test_worker b{list, [&] { for (int i = 10; i < 13; ++i) { order.push_back(i); ums_worker_yield(nullptr); } }};
    round_robin s{list, 2};
    s.run();
    EXPECT_EQ(s.yields, 6);
    EXPECT_EQ(order.size(), 6u);
}

}  // namespace
