// SPDX-License-Identifier: MIT
#pragma once

// bench/forkjoin/programs.hpp: the five programs of all forkjoin peers that are written in C++.
//
// Each is a recursion that adds up what its children return: fib adds two, skynet ten, nqueens and
// uts as many as there are, and matmul counts tiles. So all that a runtime has to say is how a sum
// is forked and joined:
//
//   template <std::size_t Most, class Value>
//   static std::uint64_t sum(std::size_t n, const Value& value);
//
// returns value(0) + ... + value(n - 1), where 1 <= n <= Most, and each but the last is a task of
// its own. The caller computes the last, as a good program does.
//
// With a cut-off, whatever is no larger than that is computed without a fork, by the same text on
// the runtime `serial`.

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace bench {

struct serial {
    template <std::size_t Most, class Value>
    static std::uint64_t sum(std::size_t n, const Value& value) {
        std::uint64_t all = 0;
        for (std::size_t i = 0; i < n; ++i) all += value(i);
        return all;
    }
};

// --- fib, skynet, nqueens ---------------------------------------------------------------------

// All are static, like a program's own functions, because g++ inlines differently if other files
// could call them.
template <class Forks>
static std::uint64_t fib(std::uint64_t n, std::uint64_t cut_off) {
    if constexpr (!std::is_same_v<Forks, serial>)
        if (n <= cut_off) return fib<serial>(n, 0);
    if (n < 2) return n;
    return Forks::template sum<2>(2, [=](std::size_t i) { return fib<Forks>(n - 1 - i, cut_off); });
}

template <class Forks>
static std::uint64_t skynet(std::uint64_t first, std::uint64_t leaves, std::uint64_t cut_off) {
    if constexpr (!std::is_same_v<Forks, serial>)
        if (leaves <= cut_off) return skynet<serial>(first, leaves, 0);
    if (leaves == 1) return first;
    const auto share = leaves / 10;
    return Forks::template sum<10>(
        10, [=](std::size_t i) { return skynet<Forks>(first + i * share, share, cut_off); });
}

constexpr std::size_t most_queens = 16;
// Of 0 queens, of 1, and so on.
constexpr std::uint64_t solutions[most_queens + 1]{
    1, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14200, 73712, 365596, 2279184, 14772512};

// A bit for each column: those that are taken, or attacked from one of the sides.
struct queens {
    std::uint32_t columns = 0, left = 0, right = 0;
};

template <class Forks>
static std::uint64_t nqueens(const queens& placed, std::uint64_t n, std::uint64_t rows,
                             std::uint64_t cut_off) {
    if constexpr (!std::is_same_v<Forks, serial>)
        if (rows <= cut_off) return nqueens<serial>(placed, n, rows, 0);
    if (rows == 0) return 1;
    queens next[most_queens];
    std::size_t found = 0;
    const std::uint32_t all = (std::uint32_t{1} << n) - 1;
    for (auto free = all & ~(placed.columns | placed.left | placed.right); free != 0;
         free &= free - 1) {
        const auto queen = free & -free;
        next[found++] = {placed.columns | queen, (placed.left | queen) << 1,
                         (placed.right | queen) >> 1};
    }
    if (found == 0) return 0;
    return Forks::template sum<most_queens>(found, [&next, n, rows, cut_off](std::size_t i) {
        return nqueens<Forks>(next[i], n, rows - 1, cut_off);
    });
}

// --- matmul -----------------------------------------------------------------------------------

constexpr std::uint64_t tile = 32;

// The blocks of square matrices that begin here: c += a * b.
struct blocks {
    const std::uint32_t* a;
    const std::uint32_t* b;
    std::uint32_t* c;
};

// Four numbers at a time, said so because -O2 keeps the loop scalar, which takes up to 1.6 times as
// long where it lies badly in the cache lines. Not inlined: the same instructions for all runtimes.
using lanes [[gnu::vector_size(16), gnu::aligned(4), gnu::may_alias]] = std::uint32_t;

[[gnu::noinline]] inline void multiply_tile(const blocks& of, std::uint64_t stride) {
    for (std::uint64_t i = 0; i < tile; ++i) {
        auto* const to = reinterpret_cast<lanes*>(of.c + i * stride);
        for (std::uint64_t k = 0; k < tile; ++k) {
            const auto factor = of.a[i * stride + k];
            const auto* const from = reinterpret_cast<const lanes*>(of.b + k * stride);
            for (std::uint64_t j = 0; j < tile / 4; ++j) to[j] += factor * from[j];
        }
    }
}

// Returns how many tiles were multiplied. The two halves of a sum come one after the other: both
// would write to the same block.
template <class Forks>
static std::uint64_t matmul(const blocks& of, std::uint64_t stride, std::uint64_t edge,
                            std::uint64_t cut_off) {
    if constexpr (!std::is_same_v<Forks, serial>)
        if (edge <= cut_off) return matmul<serial>(of, stride, edge, 0);
    if (edge <= tile) {
        multiply_tile(of, stride);
        return 1;
    }
    const auto half = edge / 2;
    std::uint64_t tiles = 0;
    for (std::uint64_t k = 0; k < edge; k += half)
        tiles += Forks::template sum<4>(4, [&of, stride, half, k, cut_off](std::size_t i) {
            const auto row = i / 2 * half * stride;
            const auto column = i % 2 * half;
            const blocks next{of.a + row + k, of.b + k * stride + column, of.c + row + column};
            return matmul<Forks>(next, stride, half, cut_off);
        });
    return tiles;
}

// Square matrices whose product is checked by Freivalds: c * x == a * (b * x), modulo 2^32.
class product {
public:
    explicit product(std::uint64_t edge) : edge_{edge}, a_(edge * edge), b_(edge * edge) {
        for (std::uint64_t i = 0; i < edge * edge; ++i) {
            a_[i] = static_cast<std::uint32_t>(i * 2654435761U >> 7);
            b_[i] = static_cast<std::uint32_t>(i * 2246822519U >> 5);
        }
        clear();
    }
    void clear() { c_.assign(edge_ * edge_, 0); }
    blocks all() { return {a_.data(), b_.data(), c_.data()}; }

    bool is_right() const {
        std::vector<std::uint32_t> x(edge_);
        for (std::uint64_t i = 0; i < edge_; ++i) x[i] = static_cast<std::uint32_t>(i * i + 1);
        return times(c_, x) == times(a_, times(b_, x));
    }

private:
    using numbers = std::vector<std::uint32_t>;
    numbers times(const numbers& matrix, const numbers& x) const {
        numbers y(edge_, 0);
        for (std::uint64_t i = 0; i < edge_; ++i)
            for (std::uint64_t j = 0; j < edge_; ++j) y[i] += matrix[i * edge_ + j] * x[j];
        return y;
    }

    std::uint64_t edge_;
    numbers a_, b_, c_;
};

// --- uts --------------------------------------------------------------------------------------

// Unbalanced tree search, after Olivier et al., "UTS: An Unbalanced Tree Search Benchmark" (2006):
// a geometric tree whose branching falls linearly from 4 at the root to 0 at its depth. The hash is
// the mixer of SplitMix64 instead of SHA-1, and all is in integers, so that every language finds
// the same tree.
constexpr std::uint64_t uts_root = 7;
constexpr std::size_t most_children = 32;

constexpr std::uint64_t deepest = 20;
constexpr std::uint64_t nodes_of[deepest + 1]{
    1,     5,     12,    32,    82,     167,    360,    776,     1661,    2844,   5347,
    11474, 24016, 46890, 92363, 179249, 338243, 688083, 1344258, 2528521, 5047143};

inline std::uint64_t mix(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
    x = (x ^ x >> 27) * 0x94d049bb133111ebU;
    return x ^ x >> 31;
}

inline std::size_t children_of(std::uint64_t node, std::uint64_t levels, std::uint64_t depth) {
    // Of 2^32. The mean of a geometric distribution is p / (1 - p).
    const auto chance = (4 * levels << 32) / (4 * levels + depth);
    std::size_t n = 0;
    for (auto draw = mix(~node); n < most_children && draw >> 32 < chance; draw = mix(draw)) ++n;
    return n;
}

// Returns the number of nodes; `levels` may still be below this one.
template <class Forks>
static std::uint64_t uts(std::uint64_t node, std::uint64_t levels, std::uint64_t depth,
                         std::uint64_t cut_off) {
    if constexpr (!std::is_same_v<Forks, serial>)
        if (levels <= cut_off) return uts<serial>(node, levels, depth, 0);
    const auto n = children_of(node, levels, depth);
    if (n == 0) return 1;
    return 1 + Forks::template sum<most_children>(n, [=](std::size_t i) {
               return uts<Forks>(mix(node + i), levels - 1, depth, cut_off);
           });
}

}  // namespace bench
