// SPDX-License-Identifier: MIT
// variants: clang
// User-mode scheduling by its Windows names: many workers, several schedulers, lists that are
// shared.
#include <memory>
#include <vector>

#include "support/conservation.hpp"
#include "support/seed.hpp"
#include "windows/queueing.hpp"

namespace {

class windows_crowd : public conserving_test {};

// What one worker does; it notices if it runs twice at the same time.
struct member {
    HANDLE thread = nullptr;
    PUMS_CONTEXT context = nullptr;
    std::atomic<int> inside{0};
    std::atomic<int>* errors = nullptr;
    unsigned random = 0;
    int steps = 0;

    void step() {
        if (inside.exchange(1) != 0) ++*errors;
        random = random * 1103515245 + 12345;
        const unsigned what = random >> 16;
        if (inside.exchange(0) != 1) ++*errors;
        if (what % 16 == 0)
            Sleep(1);
        else
            UmsThreadYield(nullptr);
    }
    static DWORD WINAPI run(LPVOID self) {
        auto& m = *static_cast<member*>(self);
        for (int i = 0; i < m.steps; ++i) m.step();
        return m.random;
    }
};

void run_crowd(int workers, int schedulers, int steps, std::uint64_t seed) {
    std::atomic<int> errors{0}, ends{workers};
    completion_list list;
    std::vector<member> all(static_cast<std::size_t>(workers));
    for (member& m : all) {
        m.errors = &errors;
        m.random = static_cast<unsigned>(seed++);
        m.steps = steps;
        must(CreateUmsThreadContext(&m.context));
        m.thread = worker_attributes{list, m.context}.create(member::run, &m);
        must(m.thread != nullptr);
    }
    {
        std::vector<std::unique_ptr<round_robin>> policies;
        std::vector<std::unique_ptr<scheduler_thread>> threads;
        for (int i = 0; i < schedulers; ++i) {
            policies.push_back(std::make_unique<round_robin>(list, ends, all.size() + 1));
            threads.push_back(std::make_unique<scheduler_thread>(*policies.back()));
        }
    }
    EXPECT_EQ(ends, 0);
    EXPECT_EQ(errors, 0);
    for (member& m : all) {
        EXPECT_EQ(WaitForSingleObject(m.thread, INFINITE), WAIT_OBJECT_0);
        DWORD code = 0;
        EXPECT_TRUE(GetExitCodeThread(m.thread, &code));
        EXPECT_EQ(code, m.random);
        EXPECT_TRUE(CloseHandle(m.thread));
        EXPECT_TRUE(DeleteUmsThreadContext(m.context));
    }
}

TEST_F(windows_crowd, a_worker_runs_on_one_of_several_schedulers_at_a_time) {
    run_crowd(40, 4, scaled(300, 30), test_seed());
}

TEST_F(windows_crowd, crowds_come_and_go) {
    for (int i = 0; i < scaled(10, 2); ++i) run_crowd(50, 1 + i % 4, 5, test_seed());
}

TEST_F(windows_crowd, ten_thousand_workers_on_four_schedulers) {
    run_crowd(scaled(10'000, 300), 4, 2, test_seed());
}

// Two consumers wait on one list: each batch goes to one of them.
TEST_F(windows_crowd, two_consumers_share_a_list) {
    completion_list list;
    std::atomic<int> found{0}, stop{0};
    const int n = scaled(200, 40);
    std::vector<std::unique_ptr<worker>> workers;
    std::atomic<int> ends{n};
    round_robin scheduler{list, ends, static_cast<std::size_t>(n) + 1};
    std::vector<PUMS_CONTEXT> taken(static_cast<std::size_t>(n));
    const auto consume = [&]() -> DWORD {
        while (stop == 0) {
            PUMS_CONTEXT one = nullptr;
            if (!DequeueUmsCompletionListItems(list, 5, &one) && GetLastError() != ERROR_TIMEOUT)
                return 1;
            for (; one != nullptr; one = GetNextUmsListItem(one))
                taken[static_cast<std::size_t>(found++)] = one;
        }
        return 0;
    };
    {
        other_thread first{consume};
        other_thread second{[&] { return consume(); }};
        for (int i = 0; i < n; ++i)
            workers.push_back(std::make_unique<worker>(list, [] { return 0; }));
        while (found < n) SwitchToThread();
        stop = 1;
    }
    EXPECT_EQ(found, n);
    for (const PUMS_CONTEXT one : taken) scheduler.push(one);
    EXPECT_TRUE(scheduler.enter());
}

}  // namespace
