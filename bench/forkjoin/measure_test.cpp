// SPDX-License-Identifier: MIT

// A row of forkjoin is worth something only if a runtime that loses a task has none.

#include "measure.hpp"

#include <gtest/gtest.h>

namespace {

struct alone : bench::serial {
    static std::uint64_t stacks() { return 1; }
    template <class Body>
    static void run(std::uint64_t, Body body) {
        body();
    }
};

// Forgets the last of the first `left` sums of so many.
struct forgetful : alone {
    static inline int left = 0;

    template <std::size_t Most, class Value>
    static std::uint64_t sum(std::size_t n, const Value& value) {
        return serial::sum<Most>(n > 1 && left-- > 0 ? n - 1 : n, value);
    }
};

constexpr std::array programs{"fib", "skynet", "nqueens", "matmul", "uts"};

bench::forkjoin_cell cell_of(const std::string& program, std::uint64_t size,
                             std::uint64_t cut_off) {
    std::string words[]{"peer", "program=" + program, "size=" + std::to_string(size),
                        "cut_off=" + std::to_string(cut_off), "min_ms=0"};
    char* argv[]{words[0].data(), words[1].data(), words[2].data(), words[3].data(),
                 words[4].data()};
    bench::cell in{5, argv};
    return bench::forkjoin_cell{in};
}

std::uint64_t size_of(const std::string& program) {
    return program == "skynet" ? 1000 : program == "matmul" ? 128 : 10;
}

TEST(forkjoin, every_program_finds_what_is_known) {
    bench::line out;
    for (const std::string program : programs)
        for (const std::uint64_t cut_off : {0, 5, 64}) {
            SCOPED_TRACE(program);
            EXPECT_NO_THROW(
                bench::measure_forkjoin<alone>(cell_of(program, size_of(program), cut_off), out));
        }
    for (std::uint64_t size = 1; size <= 10; ++size)
        for (const std::string program : {"fib", "nqueens", "uts"})
            EXPECT_NO_THROW(bench::measure_forkjoin<alone>(cell_of(program, size, 0), out));
}

TEST(forkjoin, a_lost_task_is_an_error) {
    bench::line out;
    for (const std::string program : programs) {
        SCOPED_TRACE(program);
        forgetful::left = 1;
        EXPECT_THROW(bench::measure_forkjoin<forgetful>(cell_of(program, size_of(program), 0), out),
                     std::runtime_error);
    }
}

TEST(forkjoin, an_impossible_size_is_an_error) {
    for (const auto& [program, size] :
         {std::pair{"skynet", 999}, std::pair{"matmul", 96}, std::pair{"matmul", 16},
          std::pair{"nqueens", 17}, std::pair{"uts", 21}})
        EXPECT_THROW(cell_of(program, static_cast<std::uint64_t>(size), 0), std::invalid_argument);
}

}  // namespace
