// SPDX-License-Identifier: MIT

// completion: `schedulers` kernel threads that take the tasks from one queue under a mutex. A task
// has no stack of its own here: its yield puts it back into the queue.

#include <pthread.h>

#include <deque>
#include <vector>

#include "work.hpp"

namespace {

struct pool {
    const bench::completion_cell& cell;
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
    std::deque<bool> tasks;  // Whether each has yielded.
    std::uint64_t left;
};

void* serve(void* argument) {
    auto& p = *static_cast<pool*>(argument);
    pthread_mutex_lock(&p.lock);
    for (;;) {
        while (p.tasks.empty() && p.left != 0) pthread_cond_wait(&p.changed, &p.lock);
        if (p.left == 0) break;
        const bool yields = p.cell.yields && !p.tasks.front();
        p.tasks.pop_front();
        pthread_mutex_unlock(&p.lock);
        if (!yields) bench::count_steps(p.cell.steps);
        pthread_mutex_lock(&p.lock);
        if (yields) {
            p.tasks.push_back(true);
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
        pool p{.cell = c, .tasks = {}, .left = c.tasks};
        std::vector<pthread_t> threads(c.schedulers);
        for (auto& one : threads)
            if (pthread_create(&one, nullptr, &serve, &p) != 0)
                throw std::runtime_error{"no thread for the pool"};
        for (std::uint64_t i = 0; i < c.tasks; ++i) {
            pthread_mutex_lock(&p.lock);
            p.tasks.push_back(false);
            pthread_cond_signal(&p.changed);
            pthread_mutex_unlock(&p.lock);
        }
        for (const auto one : threads) pthread_join(one, nullptr);
    });
}
