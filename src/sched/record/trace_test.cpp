// SPDX-License-Identifier: MIT
#include "sched/record/trace.hpp"

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "ums/trace.hpp"
#include "ums/ums.hpp"

namespace {

using ums::sched::trace_event;
using ums::sched::trace_record;
using ums::sched::trace_ring;
using ums::sched::tracing;
namespace base = ums::base;

struct small_ring {
    static constexpr std::size_t capacity = 64;
    std::unique_ptr<trace_record[]> records{new trace_record[capacity]};
    trace_ring ring;
    small_ring() {
        ring.records = records.get();
        ring.mask = capacity - 1;
    }
};

struct copy {
    std::uint64_t number;  // The number of the record, from 0 on.
    std::array<std::uint64_t, 3> words;
};

// Reads as a tool does, see sched/record/trace.hpp.
std::vector<copy> read(const trace_ring& ring) {
    std::vector<copy> all;
    const std::uint64_t capacity = ring.mask + 1;
    const std::uint64_t count = ring.count.load(base::acquire);
    for (std::uint64_t i = count > capacity ? count - capacity : 0; i < count; ++i) {
        const trace_record& r = ring.records[i & ring.mask];
        all.push_back({i,
                       {r.what.load(base::acquire), r.argument.load(base::acquire),
                        r.other.load(base::acquire)}});
    }
    const std::uint64_t after = ring.count.load(base::acquire);
    const std::uint64_t whole = after + 1 > capacity ? after + 1 - capacity : 0;
    std::erase_if(all, [&](const copy& c) { return c.number < whole; });
    return all;
}

void write_numbered(trace_ring& ring, std::uint64_t n) {
    ring.write(trace_event::mark, n, n * 3, n * 5);
}

void expect_whole(const copy& c) {
    ASSERT_EQ(c.words[0], std::uint64_t{15} << 56 | c.number);
    ASSERT_EQ(c.words[1], c.number * 3);
    ASSERT_EQ(c.words[2], c.number * 5);
}

TEST(trace_test, the_newest_records_overwrite_the_oldest) {
    small_ring s;
    EXPECT_TRUE(read(s.ring).empty());
    for (std::uint64_t n = 0; n < 1'000; ++n) {
        write_numbered(s.ring, n);
        const std::vector<copy> all = read(s.ring);
        // All records but the one whose place is written next.
        ASSERT_EQ(all.size(), std::min<std::size_t>(
                                  n + 1, small_ring::capacity - (n + 1 >= small_ring::capacity)));
        ASSERT_EQ(all.back().number, n);
        for (const copy& c : all) expect_whole(c);
    }
}

TEST(trace_test, a_reader_beside_the_writer_gets_no_torn_record) {
    small_ring s;
    std::atomic<bool> is_done = false;
    std::thread writer{[&] {
        for (std::uint64_t n = 0; !is_done; ++n) write_numbered(s.ring, n);
    }};
    std::uint64_t seen = 0;
    while (seen < 100'000)
        for (const copy& c : read(s.ring)) {
            expect_whole(c);
            ++seen;
        }
    is_done = true;
    writer.join();
}

TEST(trace_test, a_long_text_goes_on_in_further_records) {
    small_ring s;
    s.ring.write_text(trace_event::name, 7, std::string(100, 'x'));
    const std::vector<copy> all = read(s.ring);
    ASSERT_EQ(all.size(), 4u);
    EXPECT_EQ(all[0].words[0] >> 56, 6u);
    for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(all[i].words[0], std::uint64_t{16} << 56 | 7);
    EXPECT_EQ(std::memcmp(&all[3].words[1], "xxxxxxxxxxxxxxxx", 16), 0);
}

struct counts {
    std::array<std::uint64_t, 32> of{};
};

// Counts the events of all rings, since `before`.
counts count_events(const counts& before = {}) {
    counts c;
    for (const trace_ring* r = tracing.rings.load(base::acquire); r != nullptr;
         r = r->next.load(base::relaxed))
        for (const copy& one : read(*r)) ++c.of[one.words[0] >> 56 & 31];
    for (std::size_t i = 0; i < c.of.size(); ++i) c.of[i] -= before.of[i];
    return c;
}
std::uint64_t of(const counts& c, trace_event e) { return c.of[static_cast<unsigned>(e)]; }

// Records from before a runtime starts until the end of the scope.
struct recorded {
    recorded() { tracing.wanted.store(1, base::relaxed); }
    ~recorded() { tracing.wanted.store(0, base::relaxed); }
};

TEST(trace_test, a_program_is_recorded_as_it_went) {
    const recorded now;
    const counts before = count_events();
    ums::runtime_stats s{};
    ums::run({.processors = 1, .block = ums::block_detection::off}, [&] {
        ums::counting_semaphore<> ready{0}, back{0};
        ums::fiber other{[&] {
            for (int i = 0; i < 100; ++i) {
                ready.acquire();
                back.release();
            }
        }};
        for (int i = 0; i < 100; ++i) {
            ready.release();
            back.acquire();
        }
        other.join();
        for (int i = 0; i < 50; ++i) ums::fiber{[] { ums::trace_event("in a fiber"); }}.join();
        s = ums::stats();
    });
    const counts c = count_events(before);
    EXPECT_EQ(of(c, trace_event::spawn), s.spawned);
    EXPECT_EQ(of(c, trace_event::end), s.spawned);  // The first one has ended since.
    EXPECT_EQ(of(c, trace_event::mark), 50u);
    // Each acquire() waits, and so does each join(), except that of a fiber that had ended before.
    EXPECT_GE(of(c, trace_event::park), 190u);
    EXPECT_LE(of(c, trace_event::park), 260u);
    EXPECT_GE(of(c, trace_event::unpark), 190u);
}

TEST(trace_test, nothing_is_recorded_while_nobody_asks) {
    const counts before = count_events();
    ums::run({.processors = 2}, [] {
        for (int i = 0; i < 100; ++i) {
            ums::fiber{[] { ums::trace_event("nobody sees this"); }}.join();
            ums::this_fiber::yield();
        }
    });
    EXPECT_EQ(count_events(before).of, counts{}.of);
}

TEST(trace_test, recording_begins_and_ends_while_fibers_yield) {
    ums::run({.processors = 2}, [] {
        std::atomic<bool> is_done = false;
        std::vector<ums::fiber> all;
        for (int i = 0; i < 20; ++i)
            all.emplace_back([&] {
                while (!is_done) ums::this_fiber::yield();
            });
        for (int round = 0; round < 20; ++round) {
            const auto sum = [] {
                std::uint64_t n = 0;
                for (const trace_ring* r = tracing.rings.load(base::acquire); r != nullptr;
                     r = r->next.load(base::relaxed))
                    n += r->count.load(base::acquire);
                return n;
            };
            const std::uint64_t before = sum();
            tracing.wanted.store(1, base::relaxed);
            while (sum() < before + 1'000) ums::this_fiber::yield();
            tracing.wanted.store(0, base::relaxed);
        }
        is_done = true;
        for (ums::fiber& f : all) f.join();
    });
}

}  // namespace
