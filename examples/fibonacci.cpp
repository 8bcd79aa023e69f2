// SPDX-License-Identifier: MIT

// fibonacci: fork and join with values. Every call but the smallest has a fiber.
//
// Output:
//   fibonacci(20) = 6765

#include <cstdio>

#include <ums/ums.hpp>

namespace {

long fibonacci(int n) {
    if (n < 2) return n;
    // Forked, so any processor may take it.
    ums::value_fiber<long> left = ums::spawn(fibonacci, n - 1);
    const long right = fibonacci(n - 2);  // Computed here meanwhile.
    return left.join() + right;
}

}  // namespace

int main() {
    constexpr int n = 20;
    // run() returns what the lambda returned.
    const long result = ums::run([] { return fibonacci(n); });
    std::printf("fibonacci(%d) = %ld\n", n, result);
}
