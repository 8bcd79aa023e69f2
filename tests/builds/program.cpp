// SPDX-License-Identifier: MIT
// What users' programs do in each build of the matrix. Compiled also without exceptions, and with
// the macros of Windows and Qt before the headers.
#ifdef BUILD_MACROS
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define signals public
#define slots
#define emit
#endif
#include <ums/ums.h>
#include <ums/ums.hpp>
#include <ums/ums_io.h>

#include <chrono>
#include <cstdio>
#include <optional>

namespace {

using namespace std::chrono_literals;

int all_of_it() {
    int sum = 0;
    ums::mutex m;
    ums::channel<int> numbers{4};
    ums::fiber sends{[&] {
        for (int i = 1; i <= 10; ++i) (void)numbers.send(i);
        numbers.close();
    }};
    for (std::optional<int> n; (n = numbers.receive());) sum += *n;
    sends.join();
    {
        ums::scope all;
        for (int i = 0; i < 10; ++i)
            all.spawn([&] {
                ums::this_fiber::sleep_for(1ms);
                const std::lock_guard guard{m};
                ++sum;
            });
        all.join();
    }
    sum += ums::async([] { return 7; }).get();
    sum += ums::spawn([] { return 8; }).join();
    sum += ums::offload([] { return 9; });
    ums::promise<int> p;
    ums::fiber{[&] { p.set_value(10); }}.join();
    return sum + p.get_future().get();
}

}  // namespace

int main() {
    const int sum = ums::run({.processors = 2}, [] { return all_of_it(); });
    std::puts(sum == 55 + 10 + 7 + 8 + 9 + 10 ? "ok" : "wrong");
    return sum == 99 ? 0 : 1;
}
