// SPDX-License-Identifier: MIT

// fibonacci: fork and join with values. A fiber for every call but the smallest.
//
// Output:
//   fibonacci(20) = 6765

#include <cstdio>

#include <ums/ums.hpp>

namespace {

long fibonacci(int n) {
    if (n < 2) return n;
    // Forked: any processor may take it.
    ums::value_fiber<long> left = ums::spawn(fibonacci, n - 1);
    const long right = fibonacci(n - 2);  // Meanwhile, here.
    return left.join() + right;
}

}  // namespace

int main() {
    constexpr int n = 20;
    // run() returns what the lambda did.
    const long result = ums::run([] { return fibonacci(n); });
    std::printf("fibonacci(%d) = %ld\n", n, result);
}
