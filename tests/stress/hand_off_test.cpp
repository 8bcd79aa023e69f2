// SPDX-License-Identifier: MIT
// variants: monitor p1 fifo nomembarrier
//
// Blocks in the kernel, stops, time slices, added and removed processors and the end of a runtime,
// mixed by a seed and counted. TEST_BLOCKS=n and TEST_STOPS=n ask for at least that many.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <iostream>
#include <memory>
#include <mutex>
#include <poll.h>
#include <random>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "support/conservation.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"
#include "ums/blocking.hpp"
#include "ums/cluster.hpp"
#include "ums/fiber.hpp"
#include "ums/mutex.hpp"
#include "ums/run.hpp"
#include "ums/stats.hpp"
#include "ums/this_fiber.hpp"

namespace {

using namespace std::chrono_literals;

struct counts {
    std::uint64_t blocks = 0;  // Calls that may have blocked.
    std::uint64_t stops = 0;   // As counted by the library, of both kinds.
};

// What the fibers of one round share.
struct shared {
    std::atomic<std::uint64_t> blocks{0};
    std::mutex contended;
    std::atomic_flag spins = ATOMIC_FLAG_INIT;
    ums::mutex parks;
    // Each guarded by a lock of its own:
    std::uint64_t under_contended = 0, under_spins = 0, under_parks = 0;
    std::atomic<std::uint64_t> into_contended{0}, into_spins{0}, into_parks{0};
};

void sleep_raw(std::mt19937_64& random) {
    const timespec how_long{0, static_cast<long>(random() % 300'000)};
    ::clock_nanosleep(CLOCK_MONOTONIC, 0, &how_long, nullptr);
}

void compute(std::mt19937_64& random, bool long_ones) {
    volatile double sink = 1;
    const std::chrono::microseconds how_long{random() % (long_ones ? 5000 : 700)};
    const auto until = std::chrono::steady_clock::now() + how_long;
    while (std::chrono::steady_clock::now() < until)
        for (int i = 0; i < 50; ++i) sink = sink * 1.0001;
}

void one_of_all(std::mt19937_64& random, shared& s, int pair[2], bool for_stops) {
    switch (random() % 12) {
        case 0:
        case 1:
            sleep_raw(random);
            break;
        case 2: {
            char byte = 'x';
            if (::write(pair[1], &byte, 1) != 1 || ::read(pair[0], &byte, 1) != 1) std::abort();
            break;
        }
        case 3: {
            const timespec limit{0, static_cast<long>(random() % 200'000)};
            ::ppoll(nullptr, 0, &limit, nullptr);
            break;
        }
        case 4:
            ums::blocking([&] { sleep_raw(random); });
            break;
        case 5: {
            ++s.into_contended;
            const std::lock_guard guard{s.contended};
            ++s.under_contended;
            if (random() % 4 == 0) sleep_raw(random);
            break;
        }
        case 6: {
            // The lock is held across a call that blocks: its holder may be stopped, and the others
            // spin.
            ++s.into_spins;
            while (s.spins.test_and_set(std::memory_order_acquire)) {
            }
            ++s.under_spins;
            if (random() % 8 == 0) sleep_raw(random);
            s.spins.clear(std::memory_order_release);
            break;
        }
        case 7: {
            ++s.into_parks;
            const std::lock_guard guard{s.parks};
            ++s.under_parks;
            if (random() % 4 == 0) sleep_raw(random);
            break;
        }
        case 8: {
            // A page that is not there yet, and memory that is given back.
            constexpr std::size_t bytes = 64 * 1024;
            void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                              -1, 0);
            if (at == MAP_FAILED) std::abort();
            static_cast<volatile char*>(at)[bytes / 2] = 1;
            ::munmap(at, bytes);
            break;
        }
        case 9:
            ums::this_fiber::sleep_for(std::chrono::microseconds{random() % 200});
            break;
        case 10:
            ums::fiber{[&] { sleep_raw(random); }}.join();
            break;
        default:
            ums::this_fiber::yield();
    }
    ++s.blocks;
    // After a call that blocked, the fiber has no processor; if it computes long enough it is
    // stopped.
    if (for_stops || random() % 2 == 0) compute(random, for_stops);
}

// One runtime, from its start to its end. `for_stops`: its fibers compute for long, with short time
// slices, and one cluster is paused again and again: a slice ends at a tick of the kernel's clock,
// a pause stops at once.
counts one_round(std::uint64_t seed, std::uint64_t calls, bool for_stops) {
    std::mt19937_64 random{seed};
    ums::options options{.processors = 1 + static_cast<unsigned>(random() % 3)};
    const unsigned slices[] = {0, 0, 200, 1000};
    if (!never_stops) options.time_slice_us = for_stops ? 100 : slices[random() % 4];
    const std::uint32_t bounds[] = {10'000, 10'000, 8, 16};
    options.carriers = bounds[random() % 4];
    counts result;
    shared s;
    ums::run(options, [&] {
        ums::cluster other{
            {.name = "other", .processors = 2, .time_slice_us = options.time_slice_us}};
        const int fibers = 4 + static_cast<int>(random() % 30);
        std::atomic<std::uint64_t> done{0};
        std::atomic<int> ended{0};
        std::vector<ums::fiber> all;
        for (int i = 0; i < fibers; ++i) {
            ums::fiber_options where;
            if (for_stops ? random() % 3 != 0 : random() % 3 == 0) where.cluster = &other;
            all.emplace_back(where, [&, own_seed = random()] {
                std::mt19937_64 own{own_seed};
                int pair[2];
                if (::pipe2(pair, O_CLOEXEC) != 0) std::abort();
                while (done.fetch_add(1) < calls) one_of_all(own, s, pair, for_stops);
                ::close(pair[0]);
                ::close(pair[1]);
                ++ended;
            });
        }
        std::thread pauses{[&] {
            while (for_stops && ended < fibers) {
                other.pause();
                other.resume();
            }
        }};
        // Processors come and go meanwhile.
        while (ended < fibers) {
            if (random() % 2 == 0) {
                if (other.processors() < 4) other.add_processor();
            } else if (other.processors() > 1) {
                other.remove_processor();
            }
            ums::this_fiber::sleep_for(1ms);
        }
        for (ums::fiber& one : all) one.join();
        pauses.join();
        const ums::runtime_stats stats = ums::stats();
        result.stops = stats.stops + stats.preemptions;
    });
    EXPECT_EQ(s.under_contended, s.into_contended);
    EXPECT_EQ(s.under_spins, s.into_spins);
    EXPECT_EQ(s.under_parks, s.into_parks);
    result.blocks = s.blocks;
    return result;
}

using hand_off_stress = conserving_test;

TEST_F(hand_off_stress, blocks_stops_slices_and_removed_processors_lose_nothing) {
    const auto wanted_blocks = static_cast<std::uint64_t>(sized("TEST_BLOCKS", 4000, 400));
    const auto wanted_stops =
        never_stops ? 0 : static_cast<std::uint64_t>(sized("TEST_STOPS", 300, 0));
    std::mt19937_64 random{test_seed()};
    counts all;
    unsigned rounds = 0;
    const std::uint64_t calls = std::clamp<std::uint64_t>(wanted_blocks / 8, 200, 20'000);
    while (all.blocks < wanted_blocks || all.stops < wanted_stops) {
        const bool for_stops = all.blocks >= wanted_blocks;
        const counts one = one_round(random(), for_stops ? 200 : calls, for_stops);
        all.blocks += one.blocks;
        all.stops += one.stops;
        ++rounds;
    }
    std::cout << all.blocks << " calls, " << all.stops << " stops in " << rounds << " runtimes\n";
}

}  // namespace
