// SPDX-License-Identifier: MIT

// fibonacci: fork and join with values. A call forks one half of its work and computes the other;
// below a cut-off there are no forks. docs/fork-and-join.md explains both.
//
// Output:
//   fibonacci(30) = 832040

#include <cstdio>

#include <ums/ums.hpp>

namespace {

// Such a call takes some tens of microseconds, a fork a tenth of one.
constexpr int cut_off = 20;

long alone(int n) { return n < 2 ? n : alone(n - 1) + alone(n - 2); }

long fibonacci(int n) {
    if (n <= cut_off) return alone(n);
    // The first is forked, so any processor may take it, or this call; the second runs here.
    const auto [left, right] =
        ums::fork_join([n] { return fibonacci(n - 1); }, [n] { return fibonacci(n - 2); });
    return left + right;
}

}  // namespace

int main() {
    constexpr int n = 30;
    // run() returns what the lambda returned.
    const long result = ums::run([] { return fibonacci(n); });
    std::printf("fibonacci(%d) = %ld\n", n, result);
}
