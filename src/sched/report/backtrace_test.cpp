// SPDX-License-Identifier: MIT
// variants: migrate fifo p1 nomembarrier nosync
#include "sched/report/backtrace.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stop_token>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "sched/fiber/access.hpp"
#include "support/conservation.hpp"
#include "support/scale.hpp"
#include "ums/fiber.hpp"
#include "ums/keep_carrier.hpp"
#include "ums/run.hpp"
#include "ums/this_fiber.hpp"

namespace {

using namespace std::chrono_literals;
using ums::fiber;
using ums::sched::backtrace;
namespace this_fiber = ums::this_fiber;

class backtrace_test : public conserving_test {};

std::vector<const void*> stack_of(const fiber& f) {
    return backtrace(*ums::sched::access::fiber_of(f.ref()));
}

bool contains(const std::vector<const void*>& stack, const void* address) {
    return std::find(stack.begin(), stack.end(), address) != stack.end();
}

struct calls {
    const void* from[8];
    int count = 0;
};

// Parks at the bottom of as many frames as `calls` has room for.
[[gnu::noinline]] int descend(calls& c, int depth) {
    c.from[c.count++] = __builtin_return_address(0);
    if (depth == 0) {
        this_fiber::park();
        return 1;
    }
    return descend(c, depth - 1) + 1;
}

TEST_F(backtrace_test, the_stack_of_a_parked_fiber_has_every_call) {
    ums::run({.processors = 2}, [] {
        calls made;
        fiber f{[&] { EXPECT_EQ(descend(made, 7), 8); }};
        std::vector<const void*> stack;
        while ((stack = stack_of(f)).empty()) this_fiber::yield();
        EXPECT_EQ(made.count, 8);
        for (const void* from : made.from) EXPECT_TRUE(contains(stack, from));
        EXPECT_LT(stack.size(), 40u);  // It ends at the fiber's first frame.
        f.ref().unpark();
        f.join();
    });
}

TEST_F(backtrace_test, one_that_keeps_its_carrier_has_its_own_stack) {
    ums::run({.processors = 2}, [] {
        calls made;
        fiber f{[&] {
            const ums::keep_carrier kept;
            EXPECT_EQ(descend(made, 7), 8);
        }};
        std::vector<const void*> stack;
        while ((stack = stack_of(f)).empty()) this_fiber::yield();
        for (const void* from : made.from) EXPECT_TRUE(contains(stack, from));
        f.ref().unpark();
        f.join();
    });
}

TEST_F(backtrace_test, a_fiber_that_does_not_park_has_none) {
    ums::run({.processors = 2}, [] {
        std::atomic<bool> end = false;
        fiber f{[&] {
            while (!end) this_fiber::yield();
        }};
        EXPECT_TRUE(stack_of(f).empty());
        end = true;
        f.join();
    });
}

// Unparks, deadlines and stops that come while the stack is read are not lost.
TEST_F(backtrace_test, what_comes_while_the_stack_is_read_ends_the_wait) {
    ums::run({.processors = 2}, [] {
        const int rounds = is_scattered() ? 500 : scaled(20'000, 1500);
        std::atomic<int> left = 3;
        std::atomic<int> seen = 0;
        std::atomic<bool> end = false;
        auto finish = [&] {
            --left;
            while (!end) this_fiber::yield();
        };
        fiber woken{[&] {
            for (; seen < rounds; ++seen) this_fiber::park();
            finish();
        }};
        fiber timed{[&] {
            const ums::keep_carrier kept;
            for (int i = 0; i < rounds / 10; ++i) this_fiber::sleep_for(10us);
            finish();
        }};
        std::stop_source stops[scaled(500, 50)];
        std::atomic<int> stopped = 0;
        fiber stoppable{[&] {
            for (std::stop_source& s : stops) {
                this_fiber::park(s.get_token());
                ++stopped;
            }
            finish();
        }};
        std::thread reader{[&] {
            while (left != 0)
                for (const fiber* f : {&woken, &timed, &stoppable}) (void)stack_of(*f);
        }};
        fiber waker{[&] {
            for (int i = 0; i < rounds; ++i) {
                woken.ref().unpark();
                while (seen <= i) this_fiber::yield();
            }
        }};
        fiber stopper{[&] {
            for (int i = 0; std::stop_source & s : stops) {
                s.request_stop();
                for (++i; stopped < i;) this_fiber::yield();
            }
        }};
        waker.join();
        stopper.join();
        while (left != 0) this_fiber::yield();
        reader.join();
        end = true;
        for (fiber* f : {&woken, &timed, &stoppable}) f->join();
    });
}

}  // namespace
