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

// The child runs at once, so that the tree of calls is walked depth first, in little memory.
const ums::fiber_options forked{.launch = ums::launch::dispatch};

long alone(int n) { return n < 2 ? n : alone(n - 1) + alone(n - 2); }

long fibonacci(int n) {
    if (n <= cut_off) return alone(n);
    // Forked, so any processor may take it, or this call while the child runs.
    ums::value_fiber<long> left = ums::spawn(forked, fibonacci, n - 1);
    const long right = fibonacci(n - 2);  // Computed here meanwhile.
    return left.join() + right;
}

}  // namespace

int main() {
    constexpr int n = 30;
    // run() returns what the lambda returned.
    const long result = ums::run([] { return fibonacci(n); });
    std::printf("fibonacci(%d) = %ld\n", n, result);
}
