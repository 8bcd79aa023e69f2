// SPDX-License-Identifier: MIT
#include "sched/block/habit.hpp"

#include <thread>

#include <gtest/gtest.h>

#include "sched/fiber/fiber.hpp"
#include "sched/run/carrier.hpp"
#include "support/conservation.hpp"
#include "ums/fiber.hpp"
#include "ums/run.hpp"
#include "ums/this_fiber.hpp"

namespace {

using ums::sched::habit;

ums::sched::fiber& self() { return *ums::sched::this_carrier()->running.get(); }

constexpr ums::os::nanoseconds hour = 3'600'000'000'000;

// Pretends that it got its processor that long ago.
void went_on(ums::os::nanoseconds ago) { self().blocks.went_on.set(ums::os::now() - ago); }

class habit_test : public conserving_test {
protected:
    // No detector, so that nothing else finds a block.
    static void in_a_fiber(void (*body)()) {
        ums::run({.processors = 1, .block = ums::block_detection::off}, [body] { body(); });
    }
};

TEST_F(habit_test, blocks_that_had_to_be_found_make_the_grace_longer_up_to_a_bound) {
    in_a_fiber([] {
        ums::fiber{[] {
            EXPECT_EQ(habit::grace(self()), habit::shortest_grace);
            for (unsigned i = 1; i <= habit::highest; ++i) {
                habit::found(self());
                EXPECT_EQ(habit::grace(self()), habit::shortest_grace << i);
            }
            habit::found(self());
            EXPECT_EQ(habit::grace(self()), habit::shortest_grace << habit::highest);
        }}.join();
    });
}

TEST_F(habit_test, a_stop_after_which_the_fiber_soon_blocks_was_of_no_use) {
    in_a_fiber([] {
        ums::fiber{[] {
            habit::found(self());
            const auto before = ums::os::now();
            habit::went_on(self());
            EXPECT_GE(self().blocks.went_on.get(), before);
            went_on(-hour);  // A busy machine may take longer than `soon` from here to there.
            habit::found(self());
            EXPECT_EQ(self().blocks.level.get(), 3U);
        }}.join();
    });
}

TEST_F(habit_test, a_stop_after_which_the_fiber_computes_makes_the_grace_shorter) {
    in_a_fiber([] {
        ums::fiber{[] {
            for (unsigned i = 0; i < 4; ++i) habit::found(self());
            went_on(2 * habit::soon);
            habit::found(self());
            EXPECT_EQ(self().blocks.level.get(), 2U);
            for (unsigned i = 0; i < 4; ++i) {
                went_on(2 * habit::soon);
                habit::found(self());
            }
            EXPECT_EQ(self().blocks.level.get(), 1U);
        }}.join();
    });
}

TEST_F(habit_test, a_new_fiber_begins_with_what_its_entry_has_learned) {
    in_a_fiber([] {
        static unsigned blocks, level;
        const auto one = [] {
            for (unsigned i = 0; i < blocks; ++i) habit::found(self());
            level = self().blocks.level.get();
        };
        blocks = 3;
        ums::fiber{one}.join();
        EXPECT_EQ(level, 3U);
        blocks = 1;
        ums::fiber{one}.join();
        EXPECT_EQ(level, 3U);
        // Another entry has not learned it.
        ums::fiber{[] {
            habit::found(self());
            level = self().blocks.level.get();
        }}.join();
        EXPECT_EQ(level, 1U);
    });
}

TEST_F(habit_test, an_entry_forgets_what_is_not_so_any_more) {
    in_a_fiber([] {
        static void (*entry)(void*);
        static bool computes;
        const auto one = [] {
            entry = self().run;
            if (!computes)
                for (unsigned i = 0; i < habit::highest; ++i) habit::found(self());
            habit::found(self());
            went_on(2 * habit::soon);
            habit::found(self());
        };
        computes = false;
        ums::fiber{one}.join();
        EXPECT_EQ(habit::of_entry(entry), habit::highest - 1);
        computes = true;
        for (unsigned i = 0; i < habit::highest; ++i) ums::fiber{one}.join();
        EXPECT_EQ(habit::of_entry(entry), 1U);
    });
}

}  // namespace
