// SPDX-License-Identifier: MIT
#include "sched/queue/driver.hpp"

#include <atomic>
#include <sched.h>
#include <thread>

#include <gtest/gtest.h>

#include "support/conservation.hpp"
#include "support/scale.hpp"

namespace {

using ums::sched::driver;

constexpr ums::os::nanoseconds never = ums::os::never;

// Has a bell for interrupt() and nothing else. As with the engines, the first caller that looks
// takes its ring.
class bell final : public ums::sched::event_source {
public:
    ums::sched::fiber* wait(ums::os::nanoseconds) noexcept override {
        const visit here{*this};
        while (!rings_.exchange(false)) rings_.wait(false);
        return nullptr;
    }
    ums::sched::fiber* poll() noexcept override {
        const visit here{*this};
        sched_yield();  // Its caller looked some time ago.
        rings_ = false;
        return nullptr;
    }
    bool has_events() const noexcept override { return true; }
    void interrupt() noexcept override {
        rings_ = true;
        rings_.notify_all();
    }
    bool was_crowded() const noexcept { return was_crowded_; }

private:
    struct visit {
        explicit visit(bell& b) noexcept : at{b} {
            if (at.visitors_++ != 0) at.was_crowded_ = true;
        }
        ~visit() { --at.visitors_; }
        bell& at;
    };

    std::atomic<bool> rings_ = false, was_crowded_ = false;
    std::atomic<int> visitors_ = 0;
};

using driver_test = conserving_test;

TEST_F(driver_test, a_poll_takes_no_notice_away_from_who_waits_in_the_engine) {
    bell source;
    driver::set_source(&source);
    driver waits, polls;
    std::atomic<bool> over = false;
    std::atomic<int> round = 0, seen = 0;
    const int rounds = scaled(2'000, 500);
    std::thread poller{[&] {
        while (!over) static_cast<void>(polls.poll());
    }};
    std::thread waiter{[&] {
        for (int i = 1; i <= rounds; ++i) {
            // It may return early, so wait until this round's notice is there.
            while (round < i) static_cast<void>(waits.wait(never, true));
            seen = i;
            seen.notify_all();
        }
    }};
    for (int i = 1; i <= rounds; ++i) {
        round = i;
        waits.notify();
        seen.wait(i - 1);
    }
    waiter.join();
    over = true;
    poller.join();
    EXPECT_FALSE(source.was_crowded());
    driver::set_source(nullptr);
}

}  // namespace
