// SPDX-License-Identifier: MIT

// completion: one kernel thread for each task; the number of schedulers has no meaning here.

#include <sched.h>

#include <thread>
#include <vector>

#include "work.hpp"

int main(int argc, char** argv) {
    return bench::run_completion(argc, argv, [](const bench::completion_cell& c) {
        std::vector<std::thread> threads;
        threads.reserve(c.tasks);
        for (std::uint64_t i = 0; i < c.tasks; ++i)
            threads.emplace_back([&c] { bench::run_task(c, [] { sched_yield(); }); });
        for (auto& one : threads) one.join();
    });
}
