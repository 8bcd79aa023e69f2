// SPDX-License-Identifier: MIT
#include "carry/detect/watch_list.hpp"

#include <atomic>
#include <deque>
#include <memory>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "support/scale.hpp"

namespace {

using ums::carry::load;
using ums::carry::notice;
using ums::carry::watch_list;

class dummy final : public load {
public:
    explicit dummy(int number) noexcept : number_{number} {}
    [[nodiscard]] int tid() const noexcept override { return number_; }
    [[nodiscard]] bool is_of_interest() const noexcept override { return true; }
    [[nodiscard]] std::uint64_t activity() const noexcept override { return 0; }
    bool on_block(const notice&) noexcept override { return true; }

private:
    const int number_;
};

std::multiset<int> seen_by(watch_list::observer& o) {
    std::multiset<int> numbers;
    o.each([&](const load& w) noexcept {
        numbers.insert(w.tid());
        return true;
    });
    return numbers;
}

TEST(watch_list, a_visit_sees_each_load_once) {
    watch_list list;
    watch_list::observer o{list};
    EXPECT_TRUE(seen_by(o).empty());
    std::deque<dummy> all;
    std::multiset<int> expected;
    for (int n = 1; n <= 600; ++n) {
        list.add(all.emplace_back(n));
        expected.insert(n);
    }
    EXPECT_EQ(seen_by(o), expected);
    EXPECT_EQ(seen_by(o), expected);
    for (dummy& one : all) list.remove(one);
    EXPECT_TRUE(seen_by(o).empty());
}

TEST(watch_list, a_visit_sees_each_that_stays_while_others_come_and_go) {
    watch_list list;
    watch_list::observer o{list};
    dummy a{1}, b{2}, c{3}, d{4};
    for (dummy* one : {&a, &b, &c}) list.add(*one);
    std::multiset<int> numbers;
    o.each([&](const load& w) noexcept {
        if (w.tid() == 1) {
            list.remove(b);  // It would be visited next.
            list.add(d);     // In the place of the removed one, or later.
        }
        numbers.insert(w.tid());
        return true;
    });
    numbers.erase(4);  // It may be seen, or not.
    EXPECT_EQ(numbers, (std::multiset<int>{1, 3}));
    list.remove(a);
    EXPECT_EQ(seen_by(o), (std::multiset<int>{3, 4}));
    list.remove(c);
    list.remove(d);
}

TEST(watch_list, a_visit_ends_when_it_is_told_to) {
    watch_list list;
    watch_list::observer o{list};
    dummy a{1}, b{2};
    list.add(a);
    list.add(b);
    int visits = 0;
    o.each([&](const load&) noexcept { return ++visits < 1; });
    EXPECT_EQ(visits, 1);
    list.remove(a);
    list.remove(b);
}

// Like a sentinel that another program keeps from its CPU in the middle of a look.
TEST(watch_list, an_observer_that_is_held_up_keeps_nobody_but_the_remover_of_its_load) {
    watch_list list;
    watch_list::observer stuck{list}, other{list};
    dummy a{1}, b{2}, c{3};
    list.add(a);
    list.add(b);
    std::atomic<int> looks_at{0};
    std::atomic<bool> may_go_on{false}, has_gone_on{false};
    std::thread looks{[&] {
        stuck.each([&](const load& w) noexcept {
            looks_at = w.tid();
            looks_at.notify_all();
            may_go_on.wait(false);
            has_gone_on = true;
            return false;
        });
    }};
    looks_at.wait(0);
    ASSERT_EQ(looks_at, 1);
    list.add(c);
    list.remove(b);
    EXPECT_EQ(seen_by(other), (std::multiset<int>{1, 3}));
    list.remove(c);
    std::thread goes_on{[&] {
        may_go_on = true;
        may_go_on.notify_all();
    }};
    list.remove(a);
    EXPECT_TRUE(has_gone_on);
    goes_on.join();
    looks.join();
}

TEST(watch_list, a_removal_waits_for_every_observer) {
    watch_list list;
    const int rounds = scaled(20'000, 2'000);
    std::atomic<bool> is_over{false};
    std::atomic<std::uint64_t> visits{0};
    auto visit = [&] {
        watch_list::observer o{list};
        while (!is_over)
            o.each([&](const load& w) noexcept {
                // A sanitizer would find freed memory here.
                if (w.tid() == 5 && w.is_of_interest()) ++visits;
                return true;
            });
    };
    std::thread first{visit}, second{visit};
    for (int i = 0; i < rounds; ++i) {
        const auto one = std::make_unique<dummy>(5);
        list.add(*one);
        if (i % 64 == 0)
            for (const std::uint64_t before = visits; visits == before;) std::this_thread::yield();
        list.remove(*one);
    }
    is_over = true;
    first.join();
    second.join();
    EXPECT_GT(visits, 0u);
}

}  // namespace
