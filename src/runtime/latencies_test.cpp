// SPDX-License-Identifier: MIT
//
// On rings whose records and times are the test's own.
#include "runtime/latencies.hpp"

#include <memory>

#include <gtest/gtest.h>

#include "arch/time_stamp.hpp"
#include "os/clock.hpp"
#include "sched/fiber/wait_record.hpp"

namespace {

using namespace ums;
using sched::trace_event;
using sched::trace_record;
using sched::trace_ring;
using sched::tracing;

constexpr std::uint64_t mutex_wait =
    static_cast<std::uint64_t>(sched::wait_kind::mutex) << sched::wait_record::kind_shift | 0x1000;

class ring {
public:
    static constexpr std::uint64_t capacity = 16;

    explicit ring(std::uint32_t processor) {
        ring_.processor = processor;
        ring_.records = records_.get();
        ring_.mask = capacity - 1;
        ring_.next.store(tracing.rings.load(base::relaxed), base::relaxed);
        tracing.rings.store(&ring_, base::release);
    }
    void add(std::uint64_t when, trace_event e, std::uint64_t id, std::uint64_t other = 0,
             std::uint64_t argument = 0) {
        trace_record& r = ring_.records[ring_.count.load(base::relaxed) & ring_.mask];
        ring_.write(e, id, argument, other);
        r.when.store(when, base::relaxed);
    }
    void begin_anew() { ring_.begun_at.store(ring_.count.load(base::relaxed), base::relaxed); }

private:
    std::unique_ptr<trace_record[]> records_{new trace_record[capacity]};
    trace_ring ring_;
};

class latencies_test : public testing::Test {
protected:
    latencies_test() {
        // Treats a stamp as a nanosecond. Recording began with the machine, so that a test that is
        // interrupted for a while measures the same.
        const std::uint64_t stamp = arch::time_stamp();
        tracing.began_ns.store(os::now() - static_cast<os::nanoseconds>(stamp), base::relaxed);
        tracing.began_stamp.store(1, base::relaxed);
    }
    ~latencies_test() override {
        tracing.rings.store(nullptr, base::relaxed);
        tracing.began_stamp.store(0, base::relaxed);
        tracing.began_ns.store(0, base::relaxed);
    }
    void expect(std::uint64_t in_queue, std::uint64_t woken, std::uint64_t locks) {
        EXPECT_EQ(total(all.in_queue), in_queue);
        EXPECT_EQ(total(all.woken_to_run), woken);
        EXPECT_EQ(total(all.for_locks), locks);
    }
    static std::uint64_t total(const rt::latencies::times& h) {
        std::uint64_t n = 0;
        for (const std::uint64_t count : h.count) n += count;
        return n;
    }
    rt::latencies all;
};

TEST(histogram_test, a_bucket_counts_up_to_its_limit) {
    rt::histogram<4> h{.shortest = 100};
    for (const unsigned ns : {0u, 1u, 100u, 101u, 200u, 201u, 400u, 401u, 1'000'000u}) h.add(ns);
    EXPECT_EQ(h.count, (std::array<std::uint64_t, 4>{3, 2, 2, 2}));
    EXPECT_EQ(h.sum, 1'001'404u);
}

TEST_F(latencies_test, without_a_ring_there_is_nothing) {
    all.follow();
    expect(0, 0, 0);
}

TEST_F(latencies_test, a_wake_up_ends_when_the_fiber_runs) {
    ring a{0};
    a.add(100, trace_event::run, 1);
    a.add(200, trace_event::park, 1, 2, mutex_wait);
    a.add(300, trace_event::unpark, 1, 2);
    all.follow();
    expect(0, 0, 0);
    a.add(400, trace_event::park, 2, 1);
    all.follow();
    expect(1, 1, 1);
    EXPECT_EQ(all.records, 4u);
    EXPECT_EQ(all.missed, 0u);
    EXPECT_NEAR(static_cast<double>(all.woken_to_run.sum), 100, 10);
    EXPECT_NEAR(static_cast<double>(all.for_locks.sum), 200, 20);
    all.follow();
    expect(1, 1, 1);
}

TEST_F(latencies_test, a_fiber_that_yields_is_the_one_that_ran_before) {
    ring a{0};
    a.add(100, trace_event::run, 1);
    a.add(200, trace_event::run, 2);
    a.add(300, trace_event::run, 1);
    a.add(400, trace_event::yield, 1, 2);
    all.follow();
    expect(2, 0, 0);
}

TEST_F(latencies_test, two_rings_are_one_order_of_time) {
    ring a{0}, b{1};
    a.add(100, trace_event::run, 1);
    b.add(101, trace_event::run, 2);
    a.add(110, trace_event::park, 1, 0, mutex_wait);
    b.add(120, trace_event::unpark, 1, 2);
    a.add(130, trace_event::run, 1);
    a.add(140, trace_event::unpark, 3, 1);
    b.add(150, trace_event::park, 2, 3);
    all.follow();
    expect(2, 2, 1);
}

TEST_F(latencies_test, what_is_overwritten_is_not_guessed) {
    ring a{0}, b{1};
    a.add(100, trace_event::run, 1);
    b.add(100, trace_event::run, 9);
    all.follow();
    // The fiber runs at once, on the other processor; that record is lost.
    b.add(110, trace_event::unpark, 5, 9);
    a.add(111, trace_event::park, 1, 5);
    a.add(112, trace_event::park, 5, 1);
    for (std::uint64_t i = 0; i < ring::capacity; ++i) a.add(200 + i, trace_event::mark, 1);
    a.add(300, trace_event::park, 1, 5);
    all.follow();
    expect(0, 0, 0);
    // The lost records of the ring, the one that is written next, and that of the other ring.
    EXPECT_EQ(all.missed, 2u + 1 + 1 + 1);
    a.add(400, trace_event::unpark, 1, 5);
    a.add(410, trace_event::park, 5, 1);
    all.follow();
    expect(1, 1, 0);
}

TEST_F(latencies_test, what_came_before_a_pause_of_recording_is_forgotten) {
    ring a{0};
    a.add(100, trace_event::run, 1);
    a.add(110, trace_event::unpark, 2, 1);
    all.follow();
    a.begin_anew();
    all.follow();
    a.add(500, trace_event::run, 1);
    a.add(510, trace_event::park, 1, 2);
    all.follow();
    expect(0, 0, 0);
    EXPECT_EQ(all.missed, 0u);
}

TEST_F(latencies_test, the_ring_of_plain_threads_may_begin_late) {
    ring a{0};
    a.add(100, trace_event::run, 1);
    a.add(110, trace_event::park, 1, 0, mutex_wait);
    all.follow();
    ring threads{trace_ring::outside};
    threads.add(120, trace_event::unpark, 1);
    a.add(130, trace_event::run, 1);
    all.follow();
    expect(1, 1, 1);
}

TEST_F(latencies_test, what_is_recorded_during_the_reading_is_kept_for_the_next_time) {
    ring a{0}, b{1};
    a.add(100, trace_event::run, 1);
    b.add(100, trace_event::run, 9);
    all.follow();
    // Ring a is read before these, ring b after them: the fiber is woken, runs and ends.
    b.add(130, trace_event::park, 9, 5);
    b.add(140, trace_event::end, 5, 9);
    all.follow(110);
    expect(0, 0, 0);
    a.add(120, trace_event::unpark, 5, 1);
    all.follow(200);
    expect(1, 1, 0);
    EXPECT_EQ(all.remembered(), 2u);
    EXPECT_EQ(all.records, 5u);
    EXPECT_EQ(all.missed, 0u);
}

TEST_F(latencies_test, a_fiber_that_has_ended_is_not_remembered) {
    ring a{0};
    a.add(100, trace_event::run, 1);
    a.add(110, trace_event::spawn, 2, 1);
    a.add(120, trace_event::park, 1, 2);
    a.add(130, trace_event::unpark, 1, 2);
    a.add(140, trace_event::end, 2, 1);
    all.follow();
    EXPECT_EQ(all.remembered(), 1u);
    a.add(150, trace_event::end, 1);
    all.follow();
    EXPECT_EQ(all.remembered(), 0u);
}

TEST_F(latencies_test, time_in_the_kernel_is_not_time_in_the_queue) {
    ring a{0}, threads{trace_ring::outside};
    a.add(100, trace_event::run, 1);
    a.add(110, trace_event::hand_off, 1);
    a.add(120, trace_event::run, 2);
    threads.add(130, trace_event::back, 1);
    a.add(140, trace_event::park, 2, 1);
    all.follow();
    expect(1, 0, 0);
}

}  // namespace
