// SPDX-License-Identifier: MIT
// variants: fifo nomembarrier

// Processors that share a CPU part.
#include "sched/run/spread.hpp"

#include <atomic>
#include <cstdint>
#include <sched.h>
#include <vector>

#include <gtest/gtest.h>

#include "os/cpu/topology.hpp"
#include "sched/run/carrier.hpp"
#include "sched/run/cluster.hpp"
#include "support/conservation.hpp"
#include "ums/fiber.hpp"
#include "ums/run.hpp"
#include "ums/this_fiber.hpp"

namespace {

using ums::sched::this_carrier;

using spread_test = conserving_test;

std::uint64_t moves() {
    const auto& home = this_carrier()->proc.get()->home();
    std::uint64_t n = 0;
    for (unsigned i = 0; i < home.size(); ++i) n += home.at(i).counters.moves.get();
    return n;
}

unsigned cpus_of_this_thread() {
    cpu_set_t mask;
    return sched_getaffinity(0, sizeof mask, &mask) == 0 ? static_cast<unsigned>(CPU_COUNT(&mask))
                                                         : 0;
}

// Two fibers go to the first CPU again and again. Calls `body` after each time, until it returns
// false.
template <class Body>
void crowd(ums::options chosen, Body body) {
    chosen.processors = 2;
    // So that there are no other carriers than these two.
    chosen.block = ums::block_detection::off;
    ums::run(chosen, [&] {
        std::atomic<bool> over = false;
        auto go = [&] {
            while (!over) {
                const auto before = cpus_of_this_thread();
                ums::os::pin_this_thread(0);
                ums::os::unpin_this_thread();
                EXPECT_EQ(before, ums::os::usable_cpus());
                for (unsigned i = 0; i < 2 * ums::sched::run_queue::round; ++i)
                    ums::this_fiber::yield();
                if (!body()) over = true;
            }
        };
        ums::fiber one{go}, other{go};
        one.join();
        other.join();
    });
}

TEST_F(spread_test, who_finds_another_on_its_cpu_moves_and_keeps_its_mask) {
    if (ums::os::usable_cpus() < 2) GTEST_SKIP() << "one CPU only";
    crowd({}, [] { return moves() == 0; });
}

TEST_F(spread_test, more_processors_than_cpus_stay_where_they_are) {
    const unsigned cpus = ums::os::usable_cpus();
    ums::run({.processors = cpus + 1, .block = ums::block_detection::off}, [&] {
        std::vector<ums::fiber> all;
        for (unsigned i = 0; i <= cpus; ++i)
            all.emplace_back([] {
                for (unsigned n = 0; n < 50'000; ++n) ums::this_fiber::yield();
            });
        for (auto& f : all) f.join();
        EXPECT_EQ(moves(), 0U);
    });
}

TEST_F(spread_test, pinned_processors_stay_where_they_are) {
    ums::run({.processors = 2, .pin = true, .block = ums::block_detection::off}, [] {
        ums::fiber one{[] {
            for (unsigned n = 0; n < 50'000; ++n) ums::this_fiber::yield();
        }};
        for (unsigned n = 0; n < 50'000; ++n) ums::this_fiber::yield();
        one.join();
        EXPECT_EQ(moves(), 0U);
    });
}

}  // namespace
