// SPDX-License-Identifier: MIT
#include "block/watch_list.hpp"

#include <atomic>
#include <deque>
#include <memory>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "support/scale.hpp"

namespace {

using ums::block::notice;
using ums::block::watch_list;
using ums::block::watched;

class dummy final : public watched {
public:
    using watched::watched;
    [[nodiscard]] bool is_of_interest() const noexcept override { return true; }
    [[nodiscard]] std::uint64_t activity() const noexcept override { return 0; }
    void on_block(const notice&) noexcept override {}
};

std::multiset<int> scan(watch_list& list) {
    std::multiset<int> tids;
    list.begin_scan();
    for (;;) {
        const auto pin = list.next();
        if (!pin) return tids;
        tids.insert(pin->tid());
    }
}

bool always(const watched&) noexcept { return true; }

TEST(watch_list, a_scan_visits_each_once) {
    watch_list list;
    EXPECT_TRUE(scan(list).empty());
    std::deque<dummy> all;
    std::multiset<int> expected;
    for (int tid = 1; tid <= 600; ++tid) {
        list.add(all.emplace_back(tid));
        expected.insert(tid);
    }
    EXPECT_EQ(scan(list), expected);
    EXPECT_EQ(scan(list), expected);
    for (dummy& one : all) list.remove(one);
    EXPECT_TRUE(scan(list).empty());
}

TEST(watch_list, a_scan_visits_each_that_stays_while_others_come_and_go) {
    watch_list list;
    dummy a{1}, b{2}, c{3}, d{4};
    for (dummy* one : {&a, &b, &c}) list.add(*one);
    list.begin_scan();
    int first = 0;
    {
        const auto pin = list.next();
        first = pin->tid();
    }
    EXPECT_EQ(first, 1);
    list.remove(b);  // The next one.
    list.add(d);
    {
        const auto pin = list.next();
        EXPECT_EQ(pin->tid(), 3);
    }
    EXPECT_FALSE(list.next());
    list.remove(a);
    EXPECT_EQ(scan(list), (std::multiset<int>{3, 4}));
    list.remove(c);
    list.remove(d);
}

TEST(watch_list, finds_by_tid) {
    watch_list list;
    dummy a{7}, b{7 + 256}, c{7 + 512};  // In one bucket.
    for (dummy* one : {&a, &b, &c}) list.add(*one);
    list.remove(b);
    EXPECT_TRUE(list.find(7, always));
    EXPECT_FALSE(list.find(7 + 256, always));
    EXPECT_TRUE(list.find(7 + 512, always));
    EXPECT_FALSE(list.find(8, always));
    EXPECT_FALSE(list.find(7, [](const watched&) noexcept { return false; }));
    list.remove(a);
    list.remove(c);
}

TEST(watch_list, a_removal_waits_for_the_pins) {
    watch_list list;
    const int rounds = scaled(20'000, 2'000);
    std::atomic<bool> is_over{false};
    std::atomic<std::uint64_t> visits{0};
    std::thread visitor{[&] {
        while (!is_over) {
            list.begin_scan();
            for (;;) {
                const auto pin = list.next();
                if (!pin) break;
                // Freed memory would be found by a sanitizer.
                if (pin->tid() == 5 && pin->is_of_interest()) ++visits;
            }
        }
    }};
    for (int i = 0; i < rounds; ++i) {
        const auto one = std::make_unique<dummy>(5);
        list.add(*one);
        if (i % 64 == 0)
            for (const std::uint64_t before = visits; visits == before;) std::this_thread::yield();
        list.remove(*one);
    }
    is_over = true;
    visitor.join();
    EXPECT_GT(visits, 0u);
}

}  // namespace
