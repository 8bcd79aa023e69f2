// SPDX-License-Identifier: MIT

// A carrier that sleeps in a lock of the runtime's is not blocked, unless the sleep is a long one.

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "carry/detect/monitor_detector.hpp"
#include "os/lock.hpp"
#include "os/system.hpp"
#include "sched/block/detection.hpp"
#include "support/conservation.hpp"
#include "support/plain_thread.hpp"
#include "ums/fiber.hpp"
#include "ums/run.hpp"
#include "ums/stats.hpp"
#include "ums/this_fiber.hpp"

namespace {

using namespace ums;
using sched::detection;

constexpr os::nanoseconds an_hour = 3'600'000'000'000;

// The word of a lock that a plain thread holds until the test lets it go.
class lock_sleep_test : public conserving_test {
protected:
    lock_sleep_test() {
        carry::monitor_detector::longest = 100'000;
        word_ = 0;
        asleep_ = false;
        auto table = os::kernel_calls;
        table.futex_wait = [](const void* word, unsigned expected, const timespec* limit) noexcept {
            if (word == &word_) asleep_ = true;
            return os::kernel_calls.futex_wait(word, expected, limit);
        };
        os::system = table;
    }
    ~lock_sleep_test() override {
        os::system = os::kernel_calls;
        carry::monitor_detector::longest = longest_;
        detection::short_sleep.store(short_sleep_, base::relaxed);
    }

    // Holds the lock until may_go() returns true.
    template <class F>
    static plain_thread hold(F may_go) {
        std::atomic<bool> holds = false;
        plain_thread holder{[&holds, may_go] {
            os::lock_word::acquire(word_);
            holds = true;
            while (!may_go()) std::this_thread::yield();
            os::lock_word::release(word_);
        }};
        while (!holds) std::this_thread::yield();
        return holder;
    }
    static void pass() {
        os::lock_word::acquire(word_);
        os::lock_word::release(word_);
    }
    static const carry::monitor_detector& monitor() {
        return *static_cast<carry::monitor_detector*>(detection::by);
    }
    static bool is_asleep() { return asleep_; }

    static options one_watched() { return {.processors = 1, .block = block_detection::monitor}; }

private:
    static inline std::uint32_t word_ = 0;
    static inline std::atomic<bool> asleep_ = false;
    const os::nanoseconds longest_ = carry::monitor_detector::longest;
    const os::nanoseconds short_sleep_ = detection::short_sleep.load(base::relaxed);
};

TEST_F(lock_sleep_test, a_short_one_hands_nothing_off) {
    detection::short_sleep.store(an_hour, base::relaxed);
    // The detector looks often enough in the sleep to find any other block. It sleeps if the
    // processor has gone to a carrier that runs nothing.
    std::uint64_t enough = 0;
    plain_thread holder = hold([&enough] {
        if (!is_asleep()) return false;
        if (enough == 0) enough = monitor().samples() + 100;
        return monitor().samples() > enough || monitor().is_asleep();
    });
    run(one_watched(), [] {
        this_fiber::yield();  // It has a processor from here on, whatever blocked before.
        const auto before = stats();
        pass();
        EXPECT_TRUE(is_asleep());
        EXPECT_EQ(stats().hand_offs, before.hand_offs);
        EXPECT_EQ(stats().blocked_in_calls, before.blocked_in_calls);
    });
    holder.join();
}

TEST_F(lock_sleep_test, a_long_one_is_seen) {
    detection::short_sleep.store(1'000'000, base::relaxed);
    std::atomic<bool> may_go = false;
    plain_thread holder = hold([&may_go] { return may_go.load(); });
    run(one_watched(), [&may_go] {
        this_fiber::yield();
        const auto before = stats();
        fiber other{[&may_go] { may_go = true; }};
        pass();  // On the only processor: it ends if the other one runs meanwhile.
        other.join();
        EXPECT_GT(stats().hand_offs, before.hand_offs);
    });
    holder.join();
}

}  // namespace
