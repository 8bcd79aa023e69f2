// SPDX-License-Identifier: MIT

// fib N [THREADS]: a fiber for one of the two calls; the caller computes the other meanwhile.

#include "run.hpp"

static std::uint64_t fib(std::uint64_t n) {
    if (n < 2) return n;
    std::uint64_t left = 0;
    ums::fiber child{bench::forked, [&left, n] { left = fib(n - 1); }};
    const auto right = fib(n - 2);
    child.join();
    return left + right;
}

int main(int argc, char** argv) {
    if (argc < 2) {
        std::printf("Usage: fib <n-th fibonacci number requested> [threads]\n");
        return 0;
    }
    const auto n = bench::number(argc, argv, 1, 0);
    std::uint64_t expected = 0, next = 1;
    for (std::uint64_t i = 0; i < n; ++i) expected = std::exchange(next, expected + next);
    return bench::on_processors(bench::threads(argc, argv, 2), [n, expected] {
        (void)fib(std::min<std::uint64_t>(n, 30));  // Warms up.
        const bench::stopwatch watch;
        const auto is = fib(n);
        const auto us = watch.us();
        std::printf("output: %llu\n", static_cast<unsigned long long>(is));
        bench::report("iteration_count", 1, us);
        return bench::check("fib", is, expected);
    });
}
