// SPDX-License-Identifier: MIT

// nqueens [THREADS [QUEENS]]: the ways to place queens that do not attack each other, row by row,
// each place in a fiber but the last of a row. The suite's number is 14.

#include "run.hpp"

#include <array>

constexpr std::size_t most = 16;
constexpr std::array<std::uint64_t, most + 1> known{
    1, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14200, 73712, 365596, 2279184, 14772512};

// The column of the queen in each row.
using board = std::array<char, most>;

static bool is_free(const board& queens, int row, int column) {
    for (int above = 0; above < row; ++above) {
        const int distance = row - above;
        const int other = queens[static_cast<std::size_t>(above)];
        if (other == column || other == column - distance || other == column + distance)
            return false;
    }
    return true;
}

static std::uint64_t solutions(const board& queens, int row, int n) {
    if (row == n) return 1;
    std::array<board, most> next;
    std::size_t places = 0;
    for (int column = 0; column < n; ++column)
        if (is_free(queens, row, column)) {
            next[places] = queens;
            next[places++][static_cast<std::size_t>(row)] = static_cast<char>(column);
        }
    if (places == 0) return 0;
    std::array<std::uint64_t, most> found;
    std::array<ums::fiber, most> children;
    for (std::size_t i = 0; i + 1 < places; ++i)
        children[i] = ums::fiber{bench::forked, [&out = found[i], &from = next[i], row, n] {
                                     out = solutions(from, row + 1, n);
                                 }};
    auto sum = solutions(next[places - 1], row + 1, n);
    for (std::size_t i = 0; i + 1 < places; ++i) {
        children[i].join();
        sum += found[i];
    }
    return sum;
}

int main(int argc, char** argv) {
    const auto n = std::min<std::uint64_t>(bench::number(argc, argv, 2, 14), most);
    return bench::on_processors(bench::threads(argc, argv, 1), [n] {
        (void)solutions({}, 0, static_cast<int>(n));  // Warms up.
        const bench::stopwatch watch;
        const auto is = solutions({}, 0, static_cast<int>(n));
        const auto us = watch.us();
        std::printf("output: %llu\n", static_cast<unsigned long long>(is));
        bench::report("iteration_count", 1, us);
        return bench::check("solutions", is, known[n]);
    });
}
