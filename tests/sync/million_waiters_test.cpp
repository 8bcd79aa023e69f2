// SPDX-License-Identifier: MIT
//
// A multitude of fibers waits for a semaphore, then for an event, then for a latch; all of them
// come through. A million take up to a minute, which the kernel needs to find and clear 4 GB of
// memory: TEST_WAITERS=1000000.
#include <atomic>
#include <cstddef>

#include <gtest/gtest.h>

#include "support/both_worlds.hpp"
#include "support/conservation.hpp"
#include "support/scale.hpp"
#include "ums/event.hpp"
#include "ums/latch.hpp"
#include "ums/semaphore.hpp"
#include "ums/wait_group.hpp"

namespace {

class million_waiters_test : public conserving_test {};

TEST_F(million_waiters_test, all_are_released_and_none_is_left) {
    const int waiters = sized("TEST_WAITERS", 200'000, 5'000);
    ums::run({.processors = 2}, [waiters] {
        ums::counting_semaphore<> permits{0};
        ums::manual_reset_event event;
        ums::latch latch{waiters + 1};
        ums::wait_group all{waiters};
        std::atomic<int> at_semaphore = 0, at_event = 0, at_latch = 0;
        for (int i = 0; i < waiters; ++i)
            ums::fiber{{.stack_bytes = 16 << 10},
                       [&] {
                           ++at_semaphore;
                           permits.acquire();
                           ++at_event;
                           event.wait();
                           ++at_latch;
                           latch.arrive_and_wait();
                           all.done();
                       }}
                .detach();
        yield_until([&] { return at_semaphore == waiters; });
        EXPECT_EQ(at_event, 0);
        // One by one, in parts, and the rest at once, with some to spare.
        for (int i = 0; i < waiters / 4; ++i) permits.release();
        for (int i = 0; i < waiters / 4; i += 1000) permits.release(1000);
        yield_until([&] { return at_event >= waiters / 2; });
        permits.release(waiters);
        yield_until([&] { return at_event == waiters; });
        EXPECT_EQ(at_latch, 0);
        event.set();
        yield_until([&] { return at_latch == waiters; });
        EXPECT_FALSE(all.try_wait());
        latch.arrive_and_wait();
        all.wait();
        std::ptrdiff_t spare = 0;
        while (permits.try_acquire()) ++spare;
        EXPECT_EQ(spare, waiters / 4 + (waiters / 4 + 999) / 1000 * 1000);
    });
}

}  // namespace
