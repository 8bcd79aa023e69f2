// SPDX-License-Identifier: MIT
//
// Runs on real threads. ownership_model_test.cpp shows that no execution breaks the lock.
#include "carry/ownership.hpp"

#include <atomic>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "os/cpu/membarrier.hpp"
#include "os/system.hpp"
#include "support/conservation.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"

namespace {

using ums::carry::ownership;

// With membarrier, and with full fences.
class ownership_test : public ::testing::TestWithParam<bool> {
protected:
    ownership_test() {
        ums::os::enable_asymmetric_fence(GetParam());
        if (GetParam() && !ums::os::asymmetric()) is_refused_ = true;
        own_.reset(ums::os::asymmetric());
    }
    void SetUp() override {
        if (is_refused_) GTEST_SKIP() << "the kernel refuses membarrier";
    }

    conservation nothing_left_;
    ownership own_;

private:
    bool is_refused_ = false;
};

TEST_P(ownership_test, a_thief_gets_in_while_the_holder_is_outside) {
    EXPECT_TRUE(own_.try_claim());
    own_.unclaim();
    ASSERT_TRUE(own_.enter());
    own_.leave();
    EXPECT_TRUE(own_.try_claim());
    own_.unclaim();
}

TEST_P(ownership_test, a_thief_gives_up_while_the_holder_is_inside) {
    ASSERT_TRUE(own_.enter());
    EXPECT_FALSE(own_.try_claim());
    own_.leave();
    EXPECT_TRUE(own_.try_claim());
    own_.unclaim();
}

TEST_P(ownership_test, a_holder_does_not_wait_for_a_thief_that_sleeps_in_its_fence) {
    if (!GetParam()) GTEST_SKIP() << "a full fence does not sleep";
    static std::atomic<bool> sleeps, may_return;
    sleeps = may_return = false;
    ums::os::system.membarrier = [](int command) noexcept {
        sleeps = true;
        sleeps.notify_one();
        may_return.wait(false);
        return ums::os::kernel_calls.membarrier(command);
    };
    bool has_claimed = false;
    std::thread thief{[&] {
        has_claimed = own_.try_claim();
        if (has_claimed) own_.unclaim();
    }};
    sleeps.wait(false);
    for (int i = 0; i < 1000; ++i) {
        ASSERT_TRUE(own_.enter());
        own_.leave();
    }
    may_return = true;
    may_return.notify_one();
    thief.join();
    ums::os::system = ums::os::kernel_calls;
    EXPECT_TRUE(has_claimed);
    EXPECT_TRUE(own_.enter());
    own_.leave();
}

TEST_P(ownership_test, a_thief_finds_that_the_processor_has_gone_during_its_fence) {
    if (!GetParam()) GTEST_SKIP() << "a full fence does not sleep";
    static ownership* victim;
    victim = &own_;
    ums::os::system.membarrier = [](int command) noexcept {
        // What the holder does meanwhile.
        EXPECT_TRUE(victim->enter());
        victim->vacate();
        victim->leave();
        return ums::os::kernel_calls.membarrier(command);
    };
    EXPECT_FALSE(own_.try_claim());
    ums::os::system = ums::os::kernel_calls;
    EXPECT_FALSE(own_.enter());
    own_.occupy();
    EXPECT_TRUE(own_.try_claim());
    own_.unclaim();
}

TEST_P(ownership_test, a_second_thief_gives_up) {
    EXPECT_TRUE(own_.try_claim());
    EXPECT_FALSE(own_.try_claim());
    own_.unclaim();
    EXPECT_TRUE(own_.try_claim());
    own_.unclaim();
}

TEST_P(ownership_test, the_holder_waits_for_a_thief) {
    for (int round = 0; round < 20; ++round) {
        int number = 0;
        std::atomic<bool> coming = false, inside = false;
        ASSERT_TRUE(own_.try_claim());
        std::thread holder{[&] {
            coming = true;
            ASSERT_TRUE(own_.enter());
            inside = true;
            EXPECT_EQ(number, 1);
            own_.leave();
        }};
        while (!coming) std::this_thread::yield();
        // The holder spins, then sleeps: let it get to either.
        for (int i = 0; i < round * 10; ++i) std::this_thread::yield();
        EXPECT_FALSE(inside);
        number = 1;
        own_.unclaim();
        holder.join();
        EXPECT_TRUE(inside);
    }
}

// A structure that only the lock protects; it shows if two threads used it at the same time.
struct fragile {
    std::vector<int> stack;
    std::uint64_t first = 0, last = 0;

    void change(int value) {
        ++first;
        if (value % 3 != 0)
            stack.push_back(value);
        else if (!stack.empty())
            stack.pop_back();
        ++last;
    }
};

TEST_P(ownership_test, holder_and_thieves_change_one_structure) {
    std::minstd_rand random{static_cast<unsigned>(test_seed())};
    const auto seed = random();
    fragile shared;
    std::atomic<std::uint64_t> thefts = 0, sections = 0, torn = 0;
    std::atomic<bool> stop = false;
    // Both sides have been inside often enough, however the kernel distributes its CPUs.
    constexpr std::uint64_t wanted_sections = scaled(2'000'000, 50'000);
    constexpr std::uint64_t wanted_thefts = scaled(5000, 200);

    std::thread holder{[&] {
        std::minstd_rand own_random{static_cast<unsigned>(seed)};
        std::uint64_t n = 0;
        while (n < wanted_sections || thefts < wanted_thefts) {
            ASSERT_TRUE(own_.enter());
            torn += shared.first != shared.last;
            shared.change(static_cast<int>(n));
            own_.leave();
            ++n;
            for (auto i = own_random() % 16; i > 0; --i) asm volatile("");
        }
        sections = n;
        stop = true;
    }};
    std::vector<std::thread> thieves;
    for (int t = 0; t < 3; ++t)
        thieves.emplace_back([&, t] {
            while (!stop) {
                if (!own_.try_claim()) {
                    std::this_thread::yield();
                    continue;
                }
                torn += shared.first != shared.last;
                for (int i = 0; i <= t; ++i) shared.change(i);
                thefts += static_cast<std::uint64_t>(t) + 1;
                own_.unclaim();
            }
        });
    holder.join();
    for (std::thread& t : thieves) t.join();
    EXPECT_EQ(torn, 0u);
    EXPECT_EQ(shared.first, shared.last);
    EXPECT_EQ(shared.first, sections + thefts);
}

INSTANTIATE_TEST_SUITE_P(fences, ownership_test, ::testing::Bool(), [](const auto& chosen) {
    return chosen.param ? "asymmetric" : "symmetric";
});

}  // namespace
