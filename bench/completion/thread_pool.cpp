// SPDX-License-Identifier: MIT

// completion: `schedulers` kernel threads that take the tasks from one queue under a mutex. A task has no stack of
// its own here: its yield puts its second half into the queue.

#include <pthread.h>

#include <deque>
#include <vector>

#include "work.hpp"

namespace {

struct pool {
    const bench::completion_cell& cell;
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
    std::deque<int> halves;  // How many halves of a task are done: what is left of it.
    std::uint64_t left;
};

void* serve(void* argument) {
    auto& p = *static_cast<pool*>(argument);
    const std::uint64_t half = p.cell.steps / 2;
    pthread_mutex_lock(&p.lock);
    for (;;) {
        while (p.halves.empty() && p.left != 0) pthread_cond_wait(&p.changed, &p.lock);
        if (p.left == 0) break;
        const int done = p.halves.front();
        p.halves.pop_front();
        pthread_mutex_unlock(&p.lock);
        bool has_ended = true;
        if (!p.cell.yields) {
            bench::count_steps(p.cell.steps);
        } else {
            bench::count_steps(done == 0 ? half : p.cell.steps - half);
            has_ended = done == 1;
        }
        pthread_mutex_lock(&p.lock);
        if (!has_ended) {
            p.halves.push_back(1);
            pthread_cond_signal(&p.changed);
        } else if (--p.left == 0) {
            pthread_cond_broadcast(&p.changed);
        }
    }
    pthread_mutex_unlock(&p.lock);
    return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
    return bench::run_completion(argc, argv, [](const bench::completion_cell& c) {
        pool p{.cell = c, .halves = {}, .left = c.tasks};
        std::vector<pthread_t> threads(c.schedulers);
        for (auto& one : threads)
            if (pthread_create(&one, nullptr, &serve, &p) != 0)
                throw std::runtime_error{"no thread for the pool"};
        for (std::uint64_t i = 0; i < c.tasks; ++i) {
            pthread_mutex_lock(&p.lock);
            p.halves.push_back(0);
            pthread_cond_signal(&p.changed);
            pthread_mutex_unlock(&p.lock);
        }
        for (const auto one : threads) pthread_join(one, nullptr);
    });
}
