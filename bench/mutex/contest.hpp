// SPDX-License-Identifier: MIT
#pragma once

// bench/mutex/contest.hpp: the workload of all mutex peers that are written in C++.
//
// way=uncontended: one runner locks and unlocks.
//
// way=contended: each runner locks, computes for section_ns, unlocks, and computes outside for a
// quarter of that, until the time is up. With more than one processor, all runners wait for the
// lock. On one processor, a runtime that does not preempt never has two runners at the lock at
// once, and its figure is that of an uncontended lock; hence the next way, and the figure
// `sharers`.
//
// way=contended_yield: the same, and the holder gives up the processor inside every 16th section,
// as a holder does that logs or allocates: all others run into the lock and queue.
//
// The runners stop when the time is up and not after a number of operations each: those that come
// first would otherwise be gone, and the contention with them, before the last have started. They
// are counted under the lock itself. The first quarter is not counted: queues form in it.
//
// `sharers` is the number of runners that really shared the lock: (sum of n)^2 / (sum of n^2),
// where n is how often each runner had it. That is the number of runners if all had it equally
// often, and 1 if one of them always had it.

#include <cstdint>
#include <vector>

#include "../common/crew.hpp"
#include "../common/peer.hpp"
#include "../common/work.hpp"

namespace bench {

class contest {
public:
    contest(std::uint64_t section_ns, bool yields, std::uint64_t min_ms)
        : inside_{steps_of(section_ns)},
          outside_{steps_of(section_ns / 4)},
          yields_{yields},
          min_ns_{min_ms * 1'000'000U} {}

    // Returns how often the caller had the lock.
    template <class Mutex, class Yield>
    std::uint64_t take_part(Mutex& lock, Yield yield) {
        std::uint64_t x = 0;
        for (std::uint64_t mine = 0;; ++mine) {
            lock.lock();
            if (is_over_) {
                lock.unlock();
                return mine;
            }
            if (++ops_ % ops_per_look == 0) look();
            x = compute(inside_, x);
            if (yields_ && ops_ % ops_per_yield == 0) yield();
            lock.unlock();
            x = compute(outside_, x);
        }
    }

    // Requires: all runners have returned.
    tally result() const { return {ops_, end_ns_ - begin_ns_}; }

private:
    static constexpr std::uint64_t ops_per_look = 128;
    static constexpr std::uint64_t ops_per_yield = 16;

    void look() {
        const auto now = now_ns();
        if (warm_ns_ == 0) {
            warm_ns_ = now + min_ns_ / 4;
        } else if (begin_ns_ == 0) {
            if (now < warm_ns_) return;
            begin_ns_ = now;
            ops_ = 0;
        } else if (now >= begin_ns_ + min_ns_) {
            end_ns_ = now;
            is_over_ = true;
        }
    }

    const std::uint64_t inside_;
    const std::uint64_t outside_;
    const bool yields_;
    const std::uint64_t min_ns_;

    // Guarded by the lock that is measured:
    std::uint64_t ops_ = 0;
    std::uint64_t warm_ns_ = 0;
    std::uint64_t begin_ns_ = 0;
    std::uint64_t end_ns_ = 0;
    bool is_over_ = false;
};

inline double sharers(const std::vector<std::uint64_t>& shares) {
    double sum = 0, squares = 0;
    for (const auto one : shares) {
        const auto x = static_cast<double>(one);
        sum += x;
        squares += x * x;
    }
    return sum * sum / squares;
}

template <class Mutex>
tally lock_and_unlock() {
    constexpr std::uint64_t ops = 100'000;
    Mutex lock;
    const auto begin = now_ns();
    for (std::uint64_t i = 0; i < ops; ++i) {
        lock.lock();
        // Without this the compiler may see through a lock that it can inline.
        asm volatile("" ::: "memory");
        lock.unlock();
    }
    return {ops, now_ns() - begin};
}

template <class Runtime, class Mutex>
int run_mutex_peer(int argc, char** argv) {
    return run_peer(argc, argv, [](cell& in, line& out) {
        const auto way = in.word("way", {"uncontended", "contended", "contended_yield"});
        const auto processors = in.number("processors", 1, 1, 1024);
        const auto fibers = in.number("fibers", way == "uncontended" ? 1 : 10);
        const auto section_ns = in.number("section_ns", 0, 0);
        const auto min_ms = in.number("min_ms", 100, 1);
        in.done();

        if (way == "uncontended") {
            if (fibers != 1 || section_ns != 0)
                throw std::invalid_argument{"uncontended is one fiber and an empty section"};
            tally sum;
            Runtime::run(processors, [&] { sum = repeat(min_ms, lock_and_unlock<Mutex>); });
            out.add("ops", sum.ops).add("ns", sum.ns).add("sharers", 1.0);
            return;
        }
        contest all{section_ns, way == "contended_yield", min_ms};
        Mutex lock;
        std::vector<std::uint64_t> shares(fibers);
        Runtime::run(processors, [&] {
            run_crew<Runtime>(fibers,
                              [&](auto i) { shares[i] = all.take_part(lock, Runtime::yield); });
        });
        const auto sum = all.result();
        out.add("ops", sum.ops).add("ns", sum.ns).add("sharers", sharers(shares));
    });
}

}  // namespace bench
