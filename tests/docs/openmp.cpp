// SPDX-License-Identifier: MIT

// What docs/thread-state.md recommends for OpenMP (and oneTBB): several fibers run such loops at
// the same time, and their bodies wait in libums.

#include <chrono>
#include <cstdio>
#include <vector>

#include <ums/ums.hpp>

namespace {

// As the page prints it:
// clang-format off
long add_up() {
const long sum = ums::offload([&] {
    long n = 0;
#pragma omp parallel for reduction(+ : n)
    for (int i = 0; i < 1000; ++i) {
        ums::this_fiber::sleep_for(std::chrono::microseconds{1});  // Or a lock, a channel, ...
        n += i;
    }
    return n;
});
return sum;
}
// clang-format on

}  // namespace

int main() {
    bool all_right = true;
    ums::run({.processors = 2}, [&] {
        std::vector<ums::value_fiber<long>> sums;
        for (int i = 0; i < 4; ++i) sums.push_back(ums::spawn(add_up));
        for (auto& sum : sums) all_right &= sum.join() == 499'500;
    });
    if (!all_right) std::fputs("a sum is wrong\n", stderr);
    return all_right ? 0 : 1;
}
