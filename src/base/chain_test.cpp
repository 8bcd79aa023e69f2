// SPDX-License-Identifier: MIT
#include "base/chain.hpp"

#include <gtest/gtest.h>

namespace {

namespace chain = ums::base::chain;

struct link_pair {
    link_pair* next = nullptr;
    link_pair* other = nullptr;
};

struct chain_test : ::testing::Test {
    link_pair* first = nullptr;
    link_pair a, b, c;
};

TEST_F(chain_test, the_front_comes_last_in_first_out_and_the_back_first_in_first_out) {
    chain::push_front(first, b, &link_pair::next);
    chain::push_front(first, a, &link_pair::next);
    chain::push_back(first, c, &link_pair::next);
    EXPECT_EQ(chain::pop_front(first, &link_pair::next), &a);
    EXPECT_EQ(chain::pop_front(first, &link_pair::next), &b);
    EXPECT_EQ(chain::pop_front(first, &link_pair::next), &c);
    EXPECT_EQ(chain::pop_front(first, &link_pair::next), nullptr);
}

TEST_F(chain_test, an_item_is_removed_from_wherever_it_is_and_only_once) {
    for (link_pair* const gone : {&a, &b, &c}) {
        first = nullptr;
        for (link_pair* one : {&a, &b, &c}) chain::push_back(first, *one, &link_pair::next);
        EXPECT_TRUE(chain::try_remove(first, *gone, &link_pair::next));
        EXPECT_FALSE(chain::try_remove(first, *gone, &link_pair::next));
        for (link_pair* one : {&a, &b, &c})
            if (one != gone) {
                EXPECT_EQ(chain::pop_front(first, &link_pair::next), one);
            }
        EXPECT_EQ(first, nullptr);
    }
}

TEST_F(chain_test, an_item_is_in_two_chains_at_a_time) {
    link_pair* second = nullptr;
    for (link_pair* one : {&a, &b}) {
        chain::push_front(first, *one, &link_pair::next);
        chain::push_back(second, *one, &link_pair::other);
    }
    chain::remove(first, b, &link_pair::next);
    EXPECT_EQ(first, &a);
    EXPECT_EQ(second, &a);
    EXPECT_EQ(a.other, &b);
}

TEST_F(chain_test, removing_what_is_not_there_ends_the_program) {
    chain::push_front(first, a, &link_pair::next);
    EXPECT_DEATH(chain::remove(first, b, &link_pair::next), "that it is not in");
}

TEST(fifo_test, the_first_in_is_the_first_out_and_it_may_be_used_again_once_it_is_empty) {
    ums::base::fifo<link_pair, &link_pair::next> queue;
    link_pair a, b, c;
    for (int round = 0; round < 2; ++round) {
        EXPECT_TRUE(queue.empty());
        EXPECT_EQ(queue.pop(), nullptr);
        for (link_pair* one : {&a, &b, &c}) queue.push(*one);
        EXPECT_FALSE(queue.empty());
        for (link_pair* one : {&a, &b, &c}) EXPECT_EQ(queue.pop(), one);
    }
}

TEST(fifo_test, an_item_is_removed_from_wherever_it_is_and_what_comes_later_still_goes_to_the_end) {
    link_pair a, b, c, later;
    for (link_pair* const gone : {&a, &b, &c}) {
        ums::base::fifo<link_pair, &link_pair::next> queue;
        for (link_pair* one : {&a, &b, &c}) queue.push(*one);
        EXPECT_TRUE(queue.try_remove(*gone));
        EXPECT_FALSE(queue.try_remove(*gone));
        queue.push(later);
        for (link_pair* one : {&a, &b, &c, &later})
            if (one != gone) {
                EXPECT_EQ(queue.pop(), one);
            }
        EXPECT_TRUE(queue.empty());
    }
}

}  // namespace
