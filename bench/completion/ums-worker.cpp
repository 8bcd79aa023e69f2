// SPDX-License-Identifier: MIT

// completion: a worker of the UMS API for each task, `schedulers` scheduler threads on one completion list. What a
// scheduler takes from the list the others may execute: a dequeue takes all there is.

#include <condition_variable>
#include <deque>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <ums/ums_scheduling.h>

#include "work.hpp"

namespace {

void check(int failed) {
    if (failed != 0)
        throw std::runtime_error{"a call of the UMS API failed: " + std::to_string(-failed)};
}

std::intptr_t work(void* argument) {
    bench::run_task(*static_cast<const bench::completion_cell*>(argument),
                    [] { (void)ums_worker_yield(nullptr); });
    return 0;
}

struct shared {
    ums_completion_list_t list = 0;
    std::mutex lock;
    std::condition_variable changed;
    std::deque<ums_context_t> ready;
    std::uint64_t left = 0;

    static void wake(void* self) {
        auto& s = *static_cast<shared*>(self);
        const std::lock_guard hold{s.lock};
        s.changed.notify_one();
    }
    void take() {  // lock is held.
        ums_context_t c = 0;
        check(ums_completion_list_dequeue(list, 0, &c));
        while (c != 0) {
            const ums_context_t next = ums_context_next(c);
            unsigned char ended = 0;
            check(ums_context_query(c, UMS_INFORMATION_TERMINATED, &ended, 1, nullptr));
            if (ended == 0) {
                ready.push_back(c);
            } else {
                check(ums_context_destroy(c));
                if (--left == 0) changed.notify_all();
            }
            c = next;
        }
    }
    ums_context_t next(ums_context_t yielded) {
        std::unique_lock hold{lock};
        if (yielded != 0) ready.push_back(yielded);
        for (;;) {
            if (ready.empty()) take();
            if (left == 0) return 0;
            if (!ready.empty()) {
                const ums_context_t c = ready.front();
                ready.pop_front();
                if (!ready.empty()) changed.notify_one();
                return c;
            }
            changed.wait(hold);
        }
    }
};

thread_local shared* mine = nullptr;

void decide(ums_reason_t reason, std::uintptr_t payload, void* parameter) {
    if (reason == UMS_REASON_STARTUP) mine = static_cast<shared*>(parameter);
    const ums_context_t c = mine->next(reason == UMS_REASON_YIELD ? payload : 0);
    if (c == 0) return;
    int failed = 0;
    while ((failed = ums_worker_execute(c)) == -EAGAIN) {
    }
    check(failed);
}

}  // namespace

int main(int argc, char** argv) {
    return bench::run_completion(argc, argv, [](const bench::completion_cell& c) {
        shared all;
        check(ums_completion_list_create(&all.list));
        check(ums_completion_list_set_notify(all.list, &shared::wake, &all));
        all.left = c.tasks;
        std::vector<std::thread> threads;
        for (std::uint64_t i = 0; i < c.schedulers; ++i)
            threads.emplace_back([&all] {
                ums_scheduler_options_t options = UMS_SCHEDULER_OPTIONS_INIT;
                options.list = all.list;
                options.procedure = &decide;
                options.parameter = &all;
                check(ums_scheduler_enter(&options));
            });
        std::vector<ums_worker_t> workers(c.tasks);
        ums_worker_options_t options = UMS_WORKER_OPTIONS_INIT;
        options.list = all.list;
        options.stack_bytes = 64 * 1024;
        for (ums_worker_t& w : workers)
            check(ums_worker_create(&w, &options, &work, const_cast<bench::completion_cell*>(&c)));
        for (std::thread& t : threads) t.join();
        for (const ums_worker_t w : workers) check(ums_worker_join(w, nullptr));
        check(ums_completion_list_destroy(all.list));
    });
}
