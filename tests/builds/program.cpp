// SPDX-License-Identifier: MIT
// What users' programs do in each build of the matrix. Compiled also without exceptions, and with
// the macros of Windows, Qt and C projects before the headers.
#ifdef BUILD_MACROS
// These first: libstdc++ undefines min and max when the first of its headers is included.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <stop_token>
#include <string>
#include <system_error>
#include <tuple>
#include <variant>
#include <vector>
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define signals public
#define slots
#define emit
#define unused __attribute__((unused))
#endif
#include <ums/ums.h>
#include <ums/ums.hpp>
#include <ums/ums_io.h>
#include <ums/ums_pthread.h>

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
