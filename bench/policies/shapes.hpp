// SPDX-License-Identifier: MIT
#pragma once

// bench/policies/shapes.hpp: the workload of all policies peers: `fibers` runners work in one of
// several shapes until the time is up, and meanwhile a timer wakes an urgent one (probe.hpp).
//
//   cycle     rings of five: each wakes the next, and waits
//   yield     each yields
//   churn     half of them wait, each at a spot of its own; the others go to a random spot, wake
//             the one that waits there, and wait in its place
//   locality  the same, and each first changes 64 random words of its own 16 KiB
//   transfer  a leader wakes all others and computes until all of them have run; then it makes
//             another one leader. So the other processors must take the fibers that it woke
//   locks     each works 500 ns outside of a mutex and 100 ns inside, one mutex for eight of them;
//             the holder yields inside every 16th section
//   load      each works 10 us and yields
//   outside   the same, but a plain thread wakes the urgent one
//
// The first five have the names and the meaning of the C-for-all scheduler's benchmarks (Delisle,
// Buhr: github.com/cforall/SchedulingBenchmarks_PhD22), transfer in the variant in which fibers
// that have run wait; locks is libfibre's threadtest. A runner waits for its own signal.

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "../common/crew.hpp"
#include "../common/peer.hpp"
#include "../common/work.hpp"
#include "probe.hpp"

namespace bench {

constexpr std::uint64_t ring_size = 5;

template <class Runtime>
class shapes {
public:
    shapes(std::uint64_t fibers, std::uint64_t ns) : fibers_{fibers}, length_ns_{ns} {}

    tally run(const std::string& way) {
        if (way == "cycle") return cycle();
        if (way == "yield") return loop([](auto, auto) { Runtime::yield(); });
        if (way == "churn") return churn(0);
        if (way == "locality") return churn(64);
        if (way == "transfer") return transfer();
        if (way == "locks") return locks();
        return loop([steps = steps_of(10'000)](auto, std::uint64_t done) {
            compute(steps, done);
            Runtime::yield();
        });
    }

private:
    using signal = typename Runtime::signal;

    // Whether the time is up. A runner looks at the clock once in a while.
    bool is_over(std::uint64_t done) {
        if (done % 16 == 0) {
            const auto now = now_ns();
            auto end = end_ns_.load(std::memory_order_relaxed);
            if (end == 0)  // The first to look starts the time.
                end_ns_.compare_exchange_strong(end, now + length_ns_);
            else if (now >= end)
                stop_.store(true, std::memory_order_relaxed);
        }
        // relaxed, all of them: a runner that sees it late works on a little longer.
        return stop_.load(std::memory_order_relaxed);
    }

    // work(i) returns how many operations runner i did.
    template <class Work>
    tally run_all(Work work) {
        std::atomic<std::uint64_t> ops{0};
        const auto ns = run_crew<Runtime>(fibers_, [&](std::uint64_t i) { ops += work(i); });
        return {ops, ns};
    }

    // Each does its step(i, how many it did before) until the time is up.
    template <class Step>
    tally loop(Step step) {
        return run_all([&](std::uint64_t i) {
            std::uint64_t done = 0;
            while (!is_over(done)) step(i, done++);
            return done;
        });
    }

    tally cycle() {
        std::vector<signal> turns(fibers_);
        for (std::uint64_t i = 0; i < fibers_; i += ring_size) turns[i].send();
        return run_all([&](std::uint64_t i) {
            auto& next = turns[i % ring_size == ring_size - 1 ? i + 1 - ring_size : i + 1];
            for (std::uint64_t done = 0;;) {
                turns[i].wait();
                const bool is_last = is_over(done++);
                next.send();  // Also the last time, so that all of the ring end.
                if (is_last) return done;
            }
        });
    }

    tally churn(std::uint64_t words) {
        std::vector<signal> turns(fibers_);
        std::vector<std::atomic<std::uint64_t>> spots(fibers_ / 2);  // The waiter and 1, or 0.
        std::vector<std::array<std::uint64_t, 2048>> data(words == 0 ? 0 : fibers_);
        const auto wake = [&](std::uint64_t waiter) {
            if (waiter != 0) turns[waiter - 1].send();
        };
        const auto wait_at = [&](std::atomic<std::uint64_t>& spot, std::uint64_t i) {
            wake(spot.exchange(i + 1));
            std::uint64_t self = i + 1;
            // At the end, do not wait after the last runner has emptied the spot.
            if (!stop_ || !spot.compare_exchange_strong(self, 0)) turns[i].wait();
        };
        return run_all([&](std::uint64_t i) {
            std::uint64_t random = scramble(i), done = 0;
            if (i < spots.size()) wait_at(spots[i], i);
            while (!is_over(done)) {
                for (std::uint64_t n = 0; n < words; ++n) {
                    random = compute(1, random);
                    ++data[i][random >> 53U];
                }
                random = compute(1, random);
                wait_at(spots[(random >> 33U) % spots.size()], i);
                ++done;
            }
            for (auto& spot : spots) wake(spot.exchange(0));
            return done;
        });
    }

    tally transfer() {
        std::vector<signal> turns(fibers_);
        std::atomic<std::uint64_t> waiting{0}, leader{0};
        turns[0].send();
        return run_all([&](std::uint64_t i) {
            std::uint64_t random = scramble(i);
            for (std::uint64_t done = 0;;) {
                turns[i].wait();
                if (leader != i) {
                    // Asked before the leader can go on: the next one may be the last.
                    const bool is_last = stop_;
                    --waiting;
                    if (is_last) return done;
                    continue;
                }
                waiting = fibers_ - 1;
                const bool is_last = is_over(0);
                ++done;
                for (std::uint64_t other = 0; other < fibers_; ++other)
                    if (other != i) turns[other].send();
                while (waiting != 0) compute(10, random);
                if (is_last) return done;
                random = compute(1, random);
                leader = (random >> 33U) % fibers_;
                turns[leader].send();
            }
        });
    }

    tally locks() {
        std::vector<typename Runtime::mutex> all(fibers_ / 8 + 1);
        return loop([&, outside = steps_of(500), inside = steps_of(100)](auto i, auto done) {
            const auto x = compute(outside, done);
            const std::lock_guard held{all[i / 8]};
            compute(inside, x);
            if (done % 16 == 15) Runtime::yield();
        });
    }

    const std::uint64_t fibers_;
    const std::uint64_t length_ns_;
    std::atomic<std::uint64_t> end_ns_{0};
    std::atomic<bool> stop_{false};
};

template <class Runtime>
int run_policies_peer(int argc, char** argv) {
    return run_peer(argc, argv, [](cell& in, line& out) {
        const auto processors = in.number("processors", 1, 1, 1024);
        const auto fibers = in.number("fibers", 100);
        const auto min_ms = in.number("min_ms", 500);
        const auto way = in.word(
            "way", {"load", "cycle", "yield", "churn", "locality", "transfer", "locks", "outside"});
        const auto policy = Runtime::choose_policy(in);
        in.done();
        if (fibers % (2 * ring_size) != 0)
            throw std::invalid_argument{"rings of five and halves take a multiple of ten fibers"};
        if (way == "transfer" && processors < 2)
            throw std::invalid_argument{"transfer takes two processors: the leader computes"};

        steps_of(1);  // Measures here, so that no fiber is charged for it.
        Runtime::run(
            processors,
            [&] {
                probe<Runtime> urgent{way == "outside"};
                const auto sum = shapes<Runtime>{fibers, min_ms * 1'000'000}.run(way);
                urgent.end();
                out.add("ops", sum.ops).add("ns", sum.ns);
                urgent.add_to(out);
            },
            policy);
    });
}

}  // namespace bench
