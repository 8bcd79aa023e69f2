// SPDX-License-Identifier: MIT

// completion: the report's own test by the Linux modules' names. Two UMS schedulers with half of
// the scheduler threads each, and one list that all share; an entry point asks for the ready
// workers and executes one. A switch is timed from the call of execute_ums_thread() to the worker's
// next instruction.

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <cerrno>
#include <ums/compat/linux_ums.h>

#include "work.hpp"

namespace {

int check(int got, const char* call) {
    if (got < 0) throw std::runtime_error{std::string{call} + " failed: " + std::to_string(-got)};
    return got;
}

struct task {
    const bench::completion_cell* cell = nullptr;
    // When it first ran, and when it ran again after its yield.
    std::atomic<std::uint64_t> first_ns{0}, again_ns{0};
};

int work(void* argument) {
    auto& mine = *static_cast<task*>(argument);
    mine.first_ns = bench::now_ns();
    bench::run_task(*mine.cell, [&mine] {
        ums_thread_yield(0);
        mine.again_ns = bench::now_ns();
    });
    return 0;
}

struct scheduler_thread {
    int handle = 0;
    // Its switches:
    std::uint64_t number = 0, all_ns = 0, worst_ns = 0;
};

int schedule(void* argument) {
    auto& mine = *static_cast<scheduler_thread*>(argument);
    completion_list_data* const ready = dequeue_ums_completion_list_items(mine.handle);
    if (ready == nullptr) return -1;
    for (const auto* one = ready->head; one != nullptr; one = one->next) {
        const std::uint64_t called = bench::now_ns();
        const int got = execute_ums_thread(mine.handle, one->pid, ready);
        if (got == -EACCES || got == -EBADF) continue;
        const auto& executed = *static_cast<const task*>(one->args);
        const std::uint64_t first = executed.first_ns;
        const std::uint64_t took = (first >= called ? first : executed.again_ns.load()) - called;
        ++mine.number;
        mine.all_ns += took;
        mine.worst_ns = std::max(mine.worst_ns, took);
        return got;
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    std::uint64_t number = 0, all_ns = 0, worst_ns = 0;
    return bench::run_completion(
        argc, argv,
        [&](const bench::completion_cell& c) {
            const int handles[] = {check(ums_init(), "ums_init()"),
                                   check(ums_init(), "ums_init()")};
            completion_list_data* const list = create_completion_list(handles[0]);
            if (list == nullptr) throw std::runtime_error{"no completion list"};
            std::vector<task> tasks(c.tasks);
            std::vector<scheduler_thread> schedulers(c.schedulers);
            std::vector<std::thread> threads;
            for (std::size_t i = 0; i < schedulers.size(); ++i) {
                schedulers[i].handle = handles[i % 2];
                threads.emplace_back([&one = schedulers[i], list] {
                    enter_ums_scheduling_mode(one.handle, &schedule, &one, list->id);
                });
            }
            for (task& one : tasks) {
                one.cell = &c;
                check(add_worker_thread(handles[0], &work, &one, list->id), "add_worker_thread()");
            }
            for (const int handle : handles) check(release_ums(handle), "release_ums()");
            for (std::thread& one : threads) one.join();
            for (const int handle : handles) check(ums_close(handle), "ums_close()");
            for (const scheduler_thread& one : schedulers) {
                number += one.number;
                all_ns += one.all_ns;
                worst_ns = std::max(worst_ns, one.worst_ns);
            }
        },
        [&](bench::line& out) {
            out.add("switch_us", static_cast<double>(all_ns) / static_cast<double>(number) / 1e3)
                .add("worst_switch_us", static_cast<double>(worst_ns) / 1e3);
        });
}
