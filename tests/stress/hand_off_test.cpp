// SPDX-License-Identifier: MIT
// variants: monitor p1 fifo nomembarrier
//
// Blocks in the kernel, stops, time slices, pauses, added and removed processors and the end of a
// runtime, mixed by a seed and counted. TEST_BLOCKS=n and TEST_STOPS=n ask for at least that many.
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
#include <sys/prctl.h>
#include <sys/syscall.h>
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
    std::uint64_t stops = 0;   // Those of the default cluster, of both kinds, as ums::stats() says.
};

// What a round is for.
enum class aim {
    blocks,      // Many calls that block. The fibers compute for a short time after every second.
    slow_stops,  // More fibers that compute for long than CPUs, with short time slices: most stops
                 // wait until the kernel lets the thread in question run.
    fast_stops,  // Few fibers that compute for long, on one processor, which is paused again and
                 // again: a time slice ends at a tick of the kernel's clock, a pause stops at once.
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
    // 1: the pauser sleeps until a fiber computes in the cluster that it pauses.
    std::atomic<int> pauser_sleeps{0};
};

void sleep_raw(std::mt19937_64& random) {
    const timespec how_long{0, static_cast<long>(random() % 300'000)};
    ::clock_nanosleep(CLOCK_MONOTONIC, 0, &how_long, nullptr);
}

void wake_pauser(shared& s) {
    s.pauser_sleeps = 0;
    s.pauser_sleeps.notify_one();
}

// Mostly outside of the C library, where a stop is put off.
void compute(std::chrono::microseconds how_long, shared& s, bool is_paused_here) {
    volatile double sink = 1;
    const auto until = std::chrono::steady_clock::now() + how_long;
    while (std::chrono::steady_clock::now() < until) {
        for (int i = 0; i < 1000; ++i) sink = sink * 1.0001;
        if (is_paused_here && s.pauser_sleeps.load(std::memory_order_relaxed) != 0) wake_pauser(s);
    }
}

void one_of_all(std::mt19937_64& random, shared& s, int pair[2]) {
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
            void* at =
                ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
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
}

// The calling thread gets a CPU as soon as it wakes, also where others compute: since Linux 6.12 a
// thread that asks for shorter slices goes first. An older kernel ignores the wish, and there are
// fewer stops. Nor is the thread to sleep longer than it asks for.
void be_quick() {
    // The kernel's struct sched_attr, first version; its header cannot be included beside
    // <sched.h>.
    struct {
        std::uint32_t size, policy;
        std::uint64_t flags;
        std::int32_t nice;
        std::uint32_t priority;
        std::uint64_t runtime, deadline, period;
    } own{};
    static_assert(sizeof own == 48);
    if (::syscall(SYS_sched_getattr, 0, &own, sizeof own, 0) == 0) {
        own.runtime = 100'000;
        static_cast<void>(::syscall(SYS_sched_setattr, 0, &own, 0));
    }
    ::prctl(PR_SET_TIMERSLACK, 1ul, 0ul, 0ul, 0ul);
}

// Pauses the cluster again and again until `ended`. Each time waits until a fiber computes there
// again, so that there is one to stop.
void pause_often(ums::cluster& which, shared& s, const std::atomic<bool>& ended) {
    be_quick();
    for (;;) {
        which.pause();
        s.pauser_sleeps = 1;
        which.resume();
        // seq_cst: either this sees `ended`, or its setter comes later and wakes.
        if (ended) return;
        s.pauser_sleeps.wait(1);
    }
}

// One runtime, from its start to its end.
counts one_round(std::uint64_t seed, std::uint64_t calls, aim what) {
    std::mt19937_64 random{seed};
    const bool for_stops = what != aim::blocks;
    const bool is_fast = what == aim::fast_stops;
    ums::options options{.processors = is_fast ? 1 : 1 + static_cast<unsigned>(random() % 3)};
    const unsigned slices[] = {0, 0, 200, 1000};
    if (!never_stops) options.time_slice_us = for_stops && !is_fast ? 100 : slices[random() % 4];
    const std::uint32_t bounds[] = {10'000, 10'000, 8, 16};
    options.carriers = bounds[random() % 4];
    counts result;
    shared s;
    ums::run(options, [&] {
        ums::cluster other{{.name = "other",
                            .processors = is_fast ? 1u : 2u,
                            .time_slice_us = options.time_slice_us}};
        const int fibers =
            is_fast ? 2 + static_cast<int>(random() % 4) : 4 + static_cast<int>(random() % 30);
        const bool pauses_other = what == aim::slow_stops && random() % 2 == 0;
        std::atomic<std::uint64_t> done{0};
        std::atomic<int> ended{0};
        std::atomic<bool> all_ended{false};
        std::vector<ums::fiber> all;
        for (int i = 0; i < fibers; ++i) {
            const bool is_elsewhere =
                is_fast ? i == 0 && random() % 2 == 0 : (random() % 3 == 0) != pauses_other;
            ums::fiber_options where;
            if (is_elsewhere) where.cluster = &other;
            all.emplace_back(where, [&, is_elsewhere, own_seed = random()] {
                std::mt19937_64 own{own_seed};
                int pair[2];
                if (::pipe2(pair, O_CLOEXEC) != 0) std::abort();
                // Those that compute for long decide when a round for fast stops is over.
                while ((is_fast && is_elsewhere ? done.load() : done.fetch_add(1)) < calls) {
                    one_of_all(own, s, pair);
                    // After a call that blocked, the fiber has no processor; if it computes long
                    // enough it is stopped.
                    const unsigned most_us = !for_stops     ? 700
                                             : !is_fast     ? 5000
                                             : is_elsewhere ? 700
                                                            : 20'000;
                    if (for_stops || own() % 2 == 0)
                        compute(std::chrono::microseconds{own() % most_us}, s,
                                for_stops && is_elsewhere == pauses_other);
                }
                ::close(pair[0]);
                ::close(pair[1]);
                ++ended;
            });
        }
        std::thread pauser;
        if (for_stops)
            pauser = std::thread{[&] {
                pause_often(pauses_other ? other : ums::cluster::standard(), s, all_ended);
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
        all_ended = true;
        wake_pauser(s);
        if (for_stops) pauser.join();
        const ums::runtime_stats stats = ums::stats();
        result.stops = stats.stops + stats.preemptions;
    });
    EXPECT_EQ(s.under_contended, s.into_contended);
    EXPECT_EQ(s.under_spins, s.into_spins);
    EXPECT_EQ(s.under_parks, s.into_parks);
    result.blocks = s.blocks;
    return result;
}

// For a round that is to bring so many blocks, or stops, at most.
std::uint64_t calls_for(aim what, std::uint64_t wanted) {
    switch (what) {
        case aim::blocks:
            return std::clamp<std::uint64_t>(wanted / 8, 200, 20'000);
        case aim::fast_stops:  // Some ten stops each.
            return std::clamp<std::uint64_t>(wanted / 20, 10, 100);
        default:
            return 200;
    }
}

using hand_off_stress = conserving_test;

TEST_F(hand_off_stress, blocks_stops_slices_and_removed_processors_lose_nothing) {
    const auto wanted_blocks = static_cast<std::uint64_t>(sized("TEST_BLOCKS", 4000, 400));
    const auto wanted_stops =
        never_stops ? 0 : static_cast<std::uint64_t>(sized("TEST_STOPS", 300, 0));
    std::mt19937_64 random{test_seed()};
    counts all;
    unsigned rounds = 0;
    constexpr std::uint64_t progress_every = 20'000;
    while (all.blocks < wanted_blocks || all.stops < wanted_stops) {
        const std::uint64_t seed = random();
        const aim what = all.blocks < wanted_blocks ? aim::blocks
                         : seed % 8 != 0            ? aim::fast_stops
                                                    : aim::slow_stops;
        const counts one = one_round(
            seed, calls_for(what, what == aim::blocks ? wanted_blocks : wanted_stops - all.stops),
            what);
        all.blocks += one.blocks;
        all.stops += one.stops;
        ++rounds;
        if (all.stops / progress_every != (all.stops - one.stops) / progress_every)
            std::cout << all.blocks << " calls, " << all.stops << " stops so far" << std::endl;
    }
    std::cout << all.blocks << " calls, " << all.stops << " stops in " << rounds << " runtimes\n";
}

}  // namespace
