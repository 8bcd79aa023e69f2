// SPDX-License-Identifier: MIT

// matmul N [THREADS]: the product of two N by N matrices, in quarters down to 32 by 32. The halves
// of a sum come one after the other, because both write to the same quarter.

#include "matmul.hpp"
#include "run.hpp"

#include <algorithm>
#include <array>
#include <vector>

static void multiply(int* a, int* b, int* c, int n, int stride) {
    if (n <= 32) {
        matmul_small(a, b, c, n, stride);
        return;
    }
    const int half = n / 2;
    for (int k = 0; k < n; k += half) {
        const auto quarter = [=](int row, int column) {
            multiply(a + row * half * stride + k, b + k * stride + column * half,
                     c + row * half * stride + column * half, half, stride);
        };
        std::array children{ums::fiber{bench::forked, quarter, 0, 0},
                            ums::fiber{bench::forked, quarter, 0, 1},
                            ums::fiber{bench::forked, quarter, 1, 0}};
        quarter(1, 1);
        for (auto& one : children) one.join();
    }
}

static std::vector<int> product_of_ones(int n) {
    const auto size = static_cast<std::size_t>(n) * static_cast<std::size_t>(n);
    std::vector<int> a(size, 1), b(size, 1), c(size, 0);
    multiply(a.data(), b.data(), c.data(), n, n);
    return c;
}

int main(int argc, char** argv) {
    if (argc < 2) {
        std::printf("Usage: matmul <matrix size (power of 2)> [threads]\n");
        return 0;
    }
    const auto n = static_cast<int>(bench::number(argc, argv, 1, 0));
    return bench::on_processors(bench::threads(argc, argv, 2), [n] {
        (void)product_of_ones(n);  // Warms up.
        const bench::stopwatch watch;
        const auto c = product_of_ones(n);
        bench::report("matrix_size", static_cast<std::uint64_t>(n), watch.us());
        const auto right = static_cast<std::size_t>(std::count(c.begin(), c.end(), n));
        return bench::check("right elements", right, c.size());
    });
}
