// SPDX-License-Identifier: MIT
#pragma once

// bench/condvar/rounds.hpp: the workload of all condvar peers that are written in C++.
//
// way=round_trip: two runners take turns under one mutex with one condition variable, as in every
// textbook. One operation is a round trip.
//
// way=notify_all: `fibers` runners wait for the next round; the caller begins it with notify_all as
// soon as all wait. One operation is one runner woken, including the mutex it must take again and
// the way back into waiting; the last runner of each round wakes the caller.

#include <mutex>
#include <vector>

#include "../common/crew.hpp"
#include "../common/peer.hpp"

namespace bench {

template <class Runtime, class Mutex, class Condition>
tally rally() {
    constexpr std::uint64_t trips = Runtime::is_native ? 1'000 : 2'000;
    Mutex lock;
    Condition turned;
    int turn = 0;
    const auto play = [&](int me) {
        std::unique_lock held{lock};
        for (std::uint64_t i = 0; i < trips; ++i) {
            turned.wait(held, [&] { return turn == me; });
            turn = 1 - me;
            turned.notify_one();
        }
    };
    typename Runtime::runner other{[&] { play(1); }};
    const auto begin = now_ns();
    play(0);
    other.join();
    return {trips, now_ns() - begin};
}

template <class Runtime, class Mutex, class Condition>
tally rounds(std::uint64_t waiters) {
    const std::uint64_t all = (Runtime::is_native ? 2'000 : 20'000) / waiters + 1;
    Mutex lock;
    Condition begun;
    Condition complete;
    std::uint64_t waiting = 0;
    std::uint64_t round = 0;

    std::vector<typename Runtime::runner> runners;
    runners.reserve(waiters);
    for (std::uint64_t i = 0; i < waiters; ++i)
        runners.emplace_back([&] {
            std::unique_lock held{lock};
            while (round < all) {
                const auto mine = round;
                if (++waiting == waiters) complete.notify_one();
                begun.wait(held, [&] { return round != mine; });
            }
        });

    std::uint64_t begin = 0;
    {
        std::unique_lock held{lock};
        while (round < all) {
            complete.wait(held, [&] { return waiting == waiters; });
            if (round == 0) begin = now_ns();
            waiting = 0;
            ++round;
            begun.notify_all();
        }
    }
    for (auto& one : runners) one.join();
    return {all * waiters, now_ns() - begin};
}

template <class Runtime, class Mutex, class Condition>
int run_condvar_peer(int argc, char** argv) {
    return run_peer(argc, argv, [](cell& in, line& out) {
        const bool all = in.word("way", {"round_trip", "notify_all"}) == "notify_all";
        const auto processors = in.number("processors", 1, 1, 1024);
        const auto fibers = in.number("fibers", all ? 100 : 2, all ? 1 : 2, all ? 1'000'000 : 2);
        const auto min_ms = in.number("min_ms", 100, 0);
        in.done();

        tally sum;
        Runtime::run(processors, [&] {
            sum = repeat(min_ms, [=] {
                return all ? rounds<Runtime, Mutex, Condition>(fibers)
                           : rally<Runtime, Mutex, Condition>();
            });
        });
        out.add("ops", sum.ops).add("ns", sum.ns);
    });
}

}  // namespace bench
