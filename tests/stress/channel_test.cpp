// SPDX-License-Identifier: MIT

// A producer on a plain kernel thread and consumers on fibers, and the reverse, through each kind
// of channel. TEST_ITEMS=10000000 sets how many items; without it this is a short program of the
// test suite.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <vector>

#include <gtest/gtest.h>

#include "support/conservation.hpp"
#include "support/plain_thread.hpp"
#include "support/scale.hpp"
#include "ums/channel.hpp"
#include "ums/fiber.hpp"
#include "ums/run.hpp"

namespace {

using std::chrono::steady_clock;
using ums::channel;
using ums::channel_status;
using ums::fiber;

class channel_stress_test : public conserving_test,
                            public ::testing::WithParamInterface<std::size_t> {
public:
    // With little room a plain thread waits in the kernel for nearly each item.
    [[nodiscard]] static std::size_t items(std::size_t capacity) {
        return static_cast<std::size_t>(capacity > 100 ? sized("TEST_ITEMS", 1'000'000, 50'000)
                                                       : sized("TEST_ITEMS", 20'000, 2'000));
    }
};

class ledger {
public:
    explicit ledger(std::size_t n) : seen_(n) {}
    void note(std::uint32_t item) {
        // relaxed: the joins order.
        if (seen_[item].exchange(true, std::memory_order_relaxed)) doubled_ = true;
        count_.fetch_add(1, std::memory_order_relaxed);
    }
    void check() const {
        EXPECT_FALSE(doubled_);
        EXPECT_EQ(count_, seen_.size()) << "lost";
    }

private:
    std::vector<std::atomic<bool>> seen_;
    std::atomic<bool> doubled_ = false;
    std::atomic<std::size_t> count_ = 0;
};

void receive_all(channel<std::uint32_t>& c, ledger& book) {
    std::int64_t last = -1;
    bool in_order = true;
    for (const std::uint32_t item : c) {
        in_order = in_order && item > last;
        last = item;
        book.note(item);
    }
    EXPECT_TRUE(in_order);
}

void say_rate(const char* what, std::size_t capacity, std::size_t n,
              steady_clock::time_point start) {
    const std::chrono::duration<double> took = steady_clock::now() - start;
    std::cout << what << ", capacity ";
    capacity == ums::unbounded ? std::cout << "unbounded" : std::cout << capacity;
    std::cout << ": " << n << " items in " << took.count() << " s\n";
}

TEST_P(channel_stress_test, a_thread_feeds_fibers) {
    const std::size_t capacity = GetParam(), n = items(capacity);
    ums::run({.processors = 2}, [&] {
        channel<std::uint32_t> c{capacity};
        ledger book{n};
        const auto start = steady_clock::now();
        plain_thread producer{[&] {
            for (std::uint32_t i = 0; i < n; ++i) ASSERT_EQ(c.send(i), channel_status::ok);
            c.close();
        }};
        std::vector<fiber> consumers;
        for (int i = 0; i < 4; ++i) consumers.emplace_back([&] { receive_all(c, book); });
        for (fiber& f : consumers) f.join();
        producer.join();
        say_rate("thread to fibers", capacity, n, start);
        book.check();
    });
}

TEST_P(channel_stress_test, fibers_feed_a_thread) {
    const std::size_t capacity = GetParam(), n = items(capacity);
    ums::run({.processors = 2}, [&] {
        channel<std::uint32_t> c{capacity};
        ledger book{n};
        const auto start = steady_clock::now();
        plain_thread consumer{[&] {
            for (const std::uint32_t item : c) book.note(item);
        }};
        std::vector<fiber> producers;
        for (std::uint32_t f = 0; f < 4; ++f)
            producers.emplace_back([&, f] {
                for (auto i = f; i < n; i += 4) ASSERT_EQ(c.send(i), channel_status::ok);
            });
        for (fiber& f : producers) f.join();
        c.close();
        consumer.join();
        say_rate("fibers to a thread", capacity, n, start);
        book.check();
    });
}

INSTANTIATE_TEST_SUITE_P(each_kind, channel_stress_test,
                         ::testing::Values(std::size_t{0}, std::size_t{1024}, ums::unbounded));

}  // namespace
