// SPDX-License-Identifier: MIT
//
// paces [wait]: a program whose fibers do a known number of things, for tests of `ums trace`: 2
// pairs that wake each other 100 times by semaphores, 20 that sleep once, 30 that only end, and a
// mark each. The program prints what it did. With "wait" it then reads lines from standard input:
// "again" does it once more, "crash" is a fault in a fiber, anything else ends it.
#include <ums/ums.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace {

using namespace std::chrono_literals;

void ping_pong(ums::counting_semaphore<>& mine, ums::counting_semaphore<>& others) {
    for (int i = 0; i < 100; ++i) {
        mine.acquire();
        others.release();
    }
}

void nap() { ums::this_fiber::sleep_for(2ms); }
void only_end() { ums::trace_event("only this"); }

void do_all() {
    std::vector<ums::fiber> all;
    ums::counting_semaphore<> to[2][2] = {
        {ums::counting_semaphore<>{1}, ums::counting_semaphore<>{0}},
        {ums::counting_semaphore<>{1}, ums::counting_semaphore<>{0}}};
    for (auto& pair : to)
        for (int side = 0; side < 2; ++side)
            all.emplace_back(ums::fiber_options{.name = "ping-pong " + std::to_string(side)},
                             [&pair, side] { ping_pong(pair[side], pair[1 - side]); });
    for (int i = 0; i < 20; ++i) all.emplace_back([] { nap(); });
    for (int i = 0; i < 30; ++i) all.emplace_back([] { only_end(); });
    for (ums::fiber& f : all) f.join();
}

[[gnu::noinline]] void fault() {
    volatile std::uintptr_t nowhere = 64;  // The compiler must not know the value.
    *reinterpret_cast<volatile int*>(nowhere) = 1;
}

}  // namespace

int main(int argc, char** argv) {
    const bool waits = argc > 1 && std::strcmp(argv[1], "wait") == 0;
    return ums::run([waits] {
        do_all();
        const auto print = [] {
            const ums::runtime_stats s = ums::stats();
            std::printf("%lu spawned\n", static_cast<unsigned long>(s.spawned));
            std::fflush(stdout);
        };
        print();
        char line[64];
        while (waits && std::fgets(line, sizeof line, stdin) != nullptr) {
            if (std::strcmp(line, "crash\n") == 0)
                ums::fiber{{.name = "the wrong one"}, fault}.join();
            if (std::strcmp(line, "again\n") != 0) break;
            do_all();
            print();
        }
        return 0;
    });
}
