// SPDX-License-Identifier: MIT
#pragma once

// support/round_robin.hpp: a scheduler of the UMS API for tests, and workers from lambdas.

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <type_traits>
#include <utility>

#include <gtest/gtest.h>

#include "ums/ums_scheduling.h"

// Spares a test's set-up looking at every return value.
inline void must(int failed) {
    if (failed == 0) return;
    std::fprintf(stderr, "a call that must succeed returned %d\n", failed);
    std::abort();
}

class completion_list {
public:
    completion_list() { must(ums_completion_list_create(&list_)); }
    ~completion_list() { EXPECT_EQ(ums_completion_list_destroy(list_), 0); }
    completion_list(const completion_list&) = delete;
    completion_list& operator=(const completion_list&) = delete;
    operator ums_completion_list_t() const { return list_; }

private:
    ums_completion_list_t list_ = 0;
};

// A worker that runs a function, with a context of its own. At the end it is joined, or otherwise
// detached.
class test_worker {
public:
    // `run` returns the exit code, or nothing, which means 0.
    template <class F>
    test_worker(ums_completion_list_t list, F run,
                ums_worker_options_t options = UMS_WORKER_OPTIONS_INIT)
        : run_{[f = std::move(run)]() -> std::intptr_t {
              if constexpr (std::is_void_v<std::invoke_result_t<const F&>>)
                  return f(), 0;
              else
                  return f();
          }} {
        options.list = list;
        must(ums_worker_create(
            &worker_, &options, [](void* p) { return static_cast<test_worker*>(p)->run_(); },
            this));
        context_ = ums_worker_context(worker_);
    }
    ~test_worker() {
        if (worker_ != 0) join();
        EXPECT_EQ(ums_context_destroy(context_), 0);
    }
    test_worker(const test_worker&) = delete;
    test_worker& operator=(const test_worker&) = delete;

    std::intptr_t join() {
        std::intptr_t code = -1;
        EXPECT_EQ(ums_worker_join(std::exchange(worker_, 0), &code), 0);
        return code;
    }
    [[nodiscard]] ums_context_t context() const { return context_; }
    [[nodiscard]] ums_worker_t worker() const { return worker_; }

private:
    std::function<std::intptr_t()> run_;
    ums_worker_t worker_ = 0;
    ums_context_t context_ = 0;
};

inline bool is_terminated(ums_context_t c) {
    unsigned char flag = 0;
    must(ums_context_query(c, UMS_INFORMATION_TERMINATED, &flag, 1, nullptr));
    return flag != 0;
}
inline bool is_suspended(ums_context_t c) {
    unsigned char flag = 0;
    must(ums_context_query(c, UMS_INFORMATION_SUSPENDED, &flag, 1, nullptr));
    return flag != 0;
}

// Enters a scheduler on the calling thread. A function makes the decision at each call; the
// scheduler continues until the function returns without having executed anything.
using decision = std::function<void(ums_reason_t, std::uintptr_t payload, void* parameter)>;

inline void schedule(ums_completion_list_t list, decision decide) {
    static thread_local decision* deciding = nullptr;
    deciding = &decide;
    ums_scheduler_options_t options = UMS_SCHEDULER_OPTIONS_INIT;
    options.list = list;
    options.procedure = [](ums_reason_t reason, std::uintptr_t payload, void* parameter) {
        (*deciding)(reason, payload, parameter);
    };
    EXPECT_EQ(ums_scheduler_enter(&options), 0);
    deciding = nullptr;
}

// Runs workers in turn until `until` of them have ended; counts what it is told.
struct round_robin {
    ums_completion_list_t list;
    int until;
    std::deque<ums_context_t> ready{};
    int startups = 0, yields = 0, blocked = 0, ended = 0;

    void take(std::int64_t deadline) {
        ums_context_t next = 0;
        const int failed = ums_completion_list_dequeue(list, deadline, &next);
        if (failed != 0) ADD_FAILURE() << "dequeue returned " << failed;
        while (next != 0) {
            const ums_context_t c = next;
            next = ums_context_next(c);
            if (is_terminated(c))
                ++ended;
            else
                ready.push_back(c);
        }
    }
    void run() {
        schedule(list, [this](ums_reason_t reason, std::uintptr_t payload, void*) {
            decide(reason, payload);
        });
    }
    void decide(ums_reason_t reason, std::uintptr_t payload) {
        startups += reason == UMS_REASON_STARTUP;
        blocked += reason == UMS_REASON_BLOCKED;
        if (reason == UMS_REASON_YIELD) {
            ++yields;
            ready.push_back(payload);
        }
        pick();
    }

private:
    void pick() {
        take(0);
        while (ended < until) {
            while (!ready.empty()) {
                const ums_context_t c = ready.front();
                ready.pop_front();
                const int failed = ums_worker_execute(c);
                if (failed == -EAGAIN)
                    ready.push_front(c);
                else
                    ADD_FAILURE() << "execute returned " << failed;
            }
            take(UMS_NEVER);
        }
    }
};
