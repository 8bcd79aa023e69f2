// SPDX-License-Identifier: MIT
//
// On rings whose records are the test's own. A time stamp is a nanosecond here.
#include "trace/fiber_times.hpp"

#include <gtest/gtest.h>

namespace {

using namespace tool::tracing;
using tool::inspect::fiber_record;
using tool::inspect::fiber_state;

constexpr std::int64_t now = 1'000;

struct picture {
    std::vector<fiber_record> fibers;
    recording what;
    std::int64_t looked_at = now;

    picture() {
        what.began = {1, 1};
        what.now = {now, now};
    }
    ring& processor(std::uint32_t index) {
        ring r;
        r.processor = index;
        r.cluster = "main";
        what.rings.push_back(r);
        return what.rings.back();
    }
    void fiber(std::uint64_t id, fiber_state is) {
        fiber_record f;
        f.id = id;
        f.state = is;
        fibers.push_back(f);
    }
    std::int64_t set(bool have_all_begun = true) {
        return set_times(fibers, looked_at, have_all_begun, what);
    }
};

raw_record at(std::uint64_t when, event e, std::uint64_t fiber, std::uint64_t other = 0) {
    return {when, std::uint64_t{static_cast<unsigned>(e)} << 56 | fiber, 0, other};
}

TEST(fiber_times, each_state_begins_with_its_event) {
    picture p;
    p.processor(0).raw = {at(10, event::run, 0),      at(100, event::run, 1),
                          at(150, event::park, 1, 2), at(180, event::hand_off, 2),
                          at(190, event::run, 3),     at(250, event::yield, 3, 4),
                          at(300, event::stop, 4),    at(310, event::run, 5),
                          at(400, event::end, 5, 6),  at(500, event::unpark, 7, 6)};
    const fiber_state states[] = {fiber_state::parked,  fiber_state::blocked, fiber_state::ready,
                                  fiber_state::stopped, fiber_state::ended,   fiber_state::running,
                                  fiber_state::ready};
    for (std::uint64_t id = 1; id <= 7; ++id) p.fiber(id, states[id - 1]);
    EXPECT_EQ(p.set(), now - 10);
    const std::int64_t begun[] = {150, 180, 250, 300, 400, 400, 500};
    const std::int64_t cpu[] = {50, 30, 60, 50, 90, 600, 0};
    for (std::size_t i = 0; i < 7; ++i) {
        EXPECT_EQ(p.fibers[i].since_ns, now - begun[i]) << i + 1;
        EXPECT_EQ(p.fibers[i].cpu_ns, cpu[i]) << i + 1;
    }
}

TEST(fiber_times, a_fiber_without_an_event_has_no_times) {
    picture p;
    p.processor(0).raw = {at(10, event::run, 0)};
    p.fiber(1, fiber_state::parked);
    p.set();
    EXPECT_EQ(p.fibers[0].since_ns, -1);
    EXPECT_EQ(p.fibers[0].cpu_ns, -1);
}

// It may have been woken and have parked again on a processor whose records of that are gone.
TEST(fiber_times, no_state_is_dated_before_the_oldest_record_of_any_ring) {
    picture p;
    p.processor(0).raw = {at(10, event::run, 1), at(50, event::park, 1), at(60, event::run, 2)};
    ring& wrapped = p.processor(1);
    wrapped.lost = 7;
    wrapped.raw = {at(700, event::unpark, 9, 3), at(710, event::run, 3), at(800, event::park, 3)};
    p.fiber(1, fiber_state::parked);
    p.fiber(2, fiber_state::running);
    p.fiber(3, fiber_state::parked);
    EXPECT_EQ(p.set(), now - 710);
    EXPECT_EQ(p.fibers[0].since_ns, -1);
    EXPECT_EQ(p.fibers[0].cpu_ns, -1);
    // Its own processor says since when it runs, and the time counts that the rings have in common.
    EXPECT_EQ(p.fibers[1].since_ns, now - 60);
    EXPECT_EQ(p.fibers[1].cpu_ns, now - 710);
    EXPECT_EQ(p.fibers[2].since_ns, now - 800);
    EXPECT_EQ(p.fibers[2].cpu_ns, 90);
}

TEST(fiber_times, what_runs_when_a_ring_begins_has_run_before) {
    picture p;
    p.processor(0).raw = {at(10, event::run, 1)};
    p.fiber(1, fiber_state::running);
    p.set();
    EXPECT_EQ(p.fibers[0].since_ns, -1);
    EXPECT_EQ(p.fibers[0].cpu_ns, now - 10);
}

TEST(fiber_times, the_ring_of_plain_threads_counts_only_once_it_is_full) {
    for (const std::uint64_t lost : {0u, 1u}) {
        picture p;
        p.processor(0).raw = {at(10, event::run, 1), at(50, event::park, 1)};
        ring& others = p.processor(ring::outside);
        others.lost = lost;
        others.raw = {at(600, event::unpark, 2)};
        p.fiber(1, fiber_state::parked);
        p.fiber(2, fiber_state::ready);
        EXPECT_EQ(p.set(), lost == 0 ? now - 10 : now - 600);
        EXPECT_EQ(p.fibers[0].since_ns, lost == 0 ? now - 50 : -1);
        EXPECT_EQ(p.fibers[1].since_ns, lost == 0 ? now - 600 : -1);
    }
}

TEST(fiber_times, nothing_counts_from_before_a_gap) {
    for (const bool is_free : {false, true}) {
        picture p;
        ring& r = p.processor(0);
        r.raw = {at(10, event::run, 1), at(50, event::park, 1)};
        if (!is_free) {
            r.before_gap = 2;
            r.raw.push_back(at(500, event::run, 0));
        }
        r.is_free = is_free;
        p.processor(1).raw = {at(5, event::run, 0), at(20, event::run, 2)};
        p.fiber(1, fiber_state::parked);
        p.fiber(2, fiber_state::running);
        EXPECT_EQ(p.set(), is_free ? now - 50 : now - 500);
        EXPECT_EQ(p.fibers[0].since_ns, -1);
        EXPECT_EQ(p.fibers[1].since_ns, now - 20);
    }
}

TEST(fiber_times, a_processor_that_has_slept_from_the_start_hides_nothing) {
    for (const int what : {0, 1, 2, 3}) {
        picture p;
        p.processor(ring::outside).raw = {at(2, event::spawn, what == 1 ? 7 : 1)};
        p.processor(0).raw = {at(10, event::run, 0), at(20, event::run, 1), at(50, event::park, 1)};
        if (what == 2) p.what.rings.back().before_gap = 1;
        p.processor(1).raw = {at(600, event::run, what == 3 ? 2 : 0)};
        p.fiber(1, fiber_state::parked);
        EXPECT_EQ(p.set(), what == 0 ? now - 1 : now - 600) << what;
        EXPECT_EQ(p.fibers[0].since_ns, what == 0 ? now - 50 : -1) << what;
    }
}

TEST(fiber_times, nothing_is_known_while_a_busy_processor_does_not_record) {
    picture p;
    p.processor(0).raw = {at(10, event::run, 1), at(50, event::park, 1)};
    p.fiber(1, fiber_state::parked);
    EXPECT_EQ(p.set(false), 0);
    EXPECT_EQ(p.fibers[0].since_ns, -1);
}

// What has happened since the look must not hide the state that is shown.
TEST(fiber_times, a_fiber_that_moves_during_the_look_is_dated_by_the_state_that_was_seen) {
    picture p;
    p.processor(0).raw = {at(10, event::run, 0), at(20, event::run, 1), at(50, event::park, 1),
                          at(900, event::unpark, 1), at(910, event::run, 1)};
    p.fiber(1, fiber_state::parked);
    p.looked_at = 890;
    p.set();
    EXPECT_EQ(p.fibers[0].since_ns, now - 50);
    p.fibers[0].since_ns = -1;
    p.looked_at = 905;  // It was not parked any more, so the list itself is wrong.
    p.set();
    EXPECT_EQ(p.fibers[0].since_ns, -1);
}

}  // namespace
