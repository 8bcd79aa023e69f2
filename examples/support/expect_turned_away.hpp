// SPDX-License-Identifier: MIT
#pragma once

// expect_turned_away: checks what a server does that has no stack for one more connection. For the
// servers' tests.

#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <ums/endpoint.hpp>

#include "address_space_limit.hpp"
#include "test_client.hpp"

// The server at `at` serves clients until there is no address space for one more. It turns that one
// away, continues with the others, and serves new clients when these have gone.
// `is_served(test_client&)` tries a request.
template <class IsServed>
void expect_turned_away(const ums::net::endpoint& at, IsServed is_served) {
    using namespace std::chrono_literals;
    {
        test_client first{at};  // After this, the server has made what it makes once.
        ASSERT_TRUE(is_served(first));
    }
    const address_space_limit limit{1u << 30};
    constexpr std::size_t too_many = 1000;
    std::vector<test_client> all;
    while (all.size() < too_many) {
        test_client client{at};
        if (!is_served(client)) break;
        all.push_back(std::move(client));
    }
    EXPECT_GT(all.size(), 0u);
    EXPECT_LT(all.size(), too_many);
    for (test_client& client : all) EXPECT_TRUE(is_served(client));
    all.clear();
    // True as soon as one of the fibers has ended.
    bool goes_on = false;
    for (const auto end = std::chrono::steady_clock::now() + 60s;
         !goes_on && std::chrono::steady_clock::now() < end;) {
        test_client client{at};
        goes_on = is_served(client);
    }
    EXPECT_TRUE(goes_on);
}
