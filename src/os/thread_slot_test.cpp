// SPDX-License-Identifier: MIT
#include "os/thread_slot.hpp"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace {

using ums::os::set_thread_slot;
using ums::os::thread_slot;

TEST(thread_slot, is_null_on_a_new_thread) {
    int mine;
    set_thread_slot(&mine);
    void* seen = &mine;
    std::thread{[&seen] { seen = thread_slot(); }}.join();
    EXPECT_EQ(seen, nullptr);
    EXPECT_EQ(thread_slot(), &mine);
    set_thread_slot(nullptr);
    EXPECT_EQ(thread_slot(), nullptr);
}

TEST(thread_slot, each_thread_has_its_own) {
    std::vector<std::thread> all;
    std::vector<int> wrong(4);
    for (int& mine : wrong) {
        all.emplace_back([&mine] {
            int other;
            for (int i = 0; i < 10'000; ++i) {
                set_thread_slot(&mine);
                mine += thread_slot() != &mine;
                std::this_thread::yield();
                mine += thread_slot() != &mine;
                set_thread_slot(&other);
                mine += thread_slot() != &other;
            }
        });
    }
    for (std::thread& t : all) t.join();
    for (const int n : wrong) EXPECT_EQ(n, 0);
    EXPECT_EQ(thread_slot(), nullptr);
}

}  // namespace
