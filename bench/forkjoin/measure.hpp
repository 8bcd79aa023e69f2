// SPDX-License-Identifier: MIT
#pragma once

// bench/forkjoin/measure.hpp: one forkjoin peer.
//
// A runtime, Forks, has sum() as programs.hpp says, run(processors, body), which starts it for the
// body, and stacks(), the most stacks that there were at once, or 0 if it does not know. A walk
// whose result is wrong is an error.

#include <atomic>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "../common/peer.hpp"
#include "../common/process.hpp"
#include "programs.hpp"

namespace bench {

// On a runtime whose tasks return nothing. A Group has fork(function) and join(), which waits for
// all of its tasks.
template <class Group, std::size_t Most, class Value>
std::uint64_t sum_by_group(std::size_t n, const Value& value) {
    std::uint64_t results[Most];
    Group group;
    for (std::size_t i = 0; i + 1 < n; ++i)
        group.fork([&results, &value, i] { results[i] = value(i); });
    results[n - 1] = value(n - 1);
    group.join();
    return std::accumulate(results, results + n, std::uint64_t{0});
}

// A group of handles that are joined one by one.
template <class Handle, std::size_t Most, class Start>
class joined_group {
public:
    template <class F>
    void fork(F f) {
        handles_[forked_++] = Start{}(f);
    }
    void join() {
        for (std::size_t i = 0; i < forked_; ++i) handles_[i].join();
    }

private:
    Handle handles_[Most];
    std::size_t forked_ = 0;
};

// How many stacks exist, and the most at once, of runtimes that do not say so themselves. Counts
// only if the cell asks for it: two atomic operations for each task are not the runtime's.
class stack_count {
public:
    static inline bool is_on = false;
    static inline std::atomic<std::uint64_t> now{0}, most{0};

    static void made() {
        if (!is_on) return;
        const auto is = now.fetch_add(1) + 1;
        for (auto was = most.load(); was < is && !most.compare_exchange_weak(was, is);) {
        }
    }
    static void freed() {
        if (is_on) now.fetch_sub(1);
    }
    // With the one of the first caller; 0 if they were not counted.
    static std::uint64_t result() { return is_on ? most + 1 : 0; }
};

struct forkjoin_cell {
    std::string program;
    std::uint64_t processors, size, cut_off, min_ms;

    explicit forkjoin_cell(cell& in)
        : program{in.word("program", {"fib", "skynet", "nqueens", "matmul", "uts"})},
          processors{in.number("processors", 1, 1, 1024)},
          size{in.number("size", 20, 1)},
          cut_off{in.number("cut_off", 0, 0)},
          min_ms{in.number("min_ms", 1, 0, 60'000)} {
        stack_count::is_on = in.number("count", 0, 0, 1) == 1;
        std::uint64_t power = program == "skynet" ? 1 : tile;
        while (power < size) power *= program == "skynet" ? 10 : 2;
        const bool is_wrong = program == "fib"       ? size > 50
                              : program == "nqueens" ? size > most_queens
                              : program == "uts"     ? size > deepest
                                                     : power != size;
        if (is_wrong) throw std::invalid_argument{"size: " + program + " has no such size"};
    }
};

// One walk: what came out, and what is right.
struct walk {
    std::uint64_t answer, expected, ops;
};

template <class Forks>
walk walk_once(const forkjoin_cell& of, product& matrices) {
    const auto n = of.size;
    if (of.program == "fib") {
        std::uint64_t is = 0, next = 1;
        for (std::uint64_t i = 0; i < n; ++i) is = std::exchange(next, is + next);
        return {fib<Forks>(n, of.cut_off), is, 2 * next - 1};  // Calls.
    }
    if (of.program == "skynet")
        return {skynet<Forks>(0, n, of.cut_off), n * (n - 1) / 2, n};  // Leaves.
    if (of.program == "nqueens")
        return {nqueens<Forks>({}, n, n, of.cut_off), solutions[n], solutions[n]};
    if (of.program == "matmul") {
        const auto tiles = (n / tile) * (n / tile) * (n / tile);
        return {matmul<Forks>(matrices.all(), n, n, of.cut_off), tiles, tiles};
    }
    return {uts<Forks>(uts_root, n, n, of.cut_off), nodes_of[n], nodes_of[n]};
}

template <class Forks>
void measure_forkjoin(const forkjoin_cell& of, line& out) {
    const bool has_product = of.program == "matmul";
    product matrices{has_product ? of.size : 0};
    const auto rss_before = status_bytes("VmRSS");
    std::uint64_t walks = 0, cpu = 0, stacks = 0;
    bool is_wrong = false;
    tally all;
    Forks::run(of.processors, [&] {
        all = repeat(of.min_ms, [&] {
            if (has_product) matrices.clear();
            const auto cpu_before = cpu_ns();
            const auto begin = now_ns();
            const auto got = walk_once<Forks>(of, matrices);
            const auto ns = now_ns() - begin;
            cpu += cpu_ns() - cpu_before;
            ++walks;
            is_wrong |= got.answer != got.expected || (has_product && !matrices.is_right());
            return tally{got.ops, ns};
        });
        stacks = Forks::stacks();
    });
    if (is_wrong) throw std::runtime_error{"wrong result"};
    out.add("ops", all.ops).add("ns", all.ns).add("total_ns", all.ns / walks);
    out.add("cpu_ns", cpu / walks);
    if (stacks != 0) out.add("stacks", stacks);
    out.add("peak_above_start_bytes", status_bytes("VmHWM") - rss_before);
}

template <class Forks>
int run_forkjoin_peer(int argc, char** argv) {
    return run_peer(argc, argv, [](cell& in, line& out) {
        const forkjoin_cell of{in};
        in.done();
        measure_forkjoin<Forks>(of, out);
    });
}

}  // namespace bench
