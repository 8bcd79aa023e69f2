// SPDX-License-Identifier: MIT
//
// A little of everything, twice, for Valgrind to watch: it must find no error and no leak.

#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include <ums/ums.hpp>

namespace {

int sum_of_squares(int n) {
    std::vector<ums::value_fiber<int>> parts;
    for (int i = 1; i <= n; ++i)
        parts.push_back(ums::spawn([i] {
            ums::this_fiber::yield();
            return i * i;
        }));
    int sum = 0;
    for (auto& part : parts) sum += part.join();
    return sum;
}

std::string thrown_and_caught() {
    try {
        ums::spawn([]() -> int {
            try {
                throw std::runtime_error{"inner"};
            } catch (...) {
                ums::this_fiber::yield();
                throw;
            }
        }).join();
    } catch (const std::runtime_error& e) {
        return e.what();
    }
    return "";
}

int deep(int n) {
    volatile char frame[256] = {};
    frame[n % 256] = 1;
    return n == 0 ? 0 : deep(n - 1) + frame[n % 256];
}

bool everything() {
    ums::fiber parked{{.name = "parked"}, [] { ums::this_fiber::park(); }};
    ums::fiber sleeper{[] { ums::this_fiber::sleep_for(std::chrono::milliseconds{1}); }};
    ums::fiber large{{.stack_bytes = 1 << 20}, [] { deep(2'000); }};
    bool right = sum_of_squares(50) == 42'925 && thrown_and_caught() == "inner" && deep(50) == 50;
    {
        ums::cluster other{{.processors = 1, .policy = ums::policy_kind::global_fifo}};
        right = right && ums::spawn({.cluster = &other}, [] { return 7; }).join() == 7;
    }
    parked.ref().unpark();
    parked.join();
    sleeper.join();
    large.join();
    ums::trim();  // After this the stacks' memory is new.
    return right && sum_of_squares(10) == 385;
}

}  // namespace

int main() {
    bool right = true;
    // The second runtime's stacks may lie where the first one's were.
    for (const auto guard : {ums::guard_kind::automatic, ums::guard_kind::mprotect})
        right = ums::run({.processors = 2, .guard = guard}, everything) && right;
    std::puts(right ? "right" : "wrong");
    return right ? 0 : 1;
}
