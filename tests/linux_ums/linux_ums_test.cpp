// SPDX-License-Identifier: MIT
// variants: futex clang
// The Linux modules' names.
#include <atomic>
#include <cerrno>
#include <thread>
#include <time.h>
#include <vector>

#include "support/conservation.hpp"
#include "support/scale.hpp"
#include "ums/compat/linux_ums.h"
#include "ums/ums_scheduling.h"

namespace {

class linux_names : public conserving_test {};

struct scheduler {
    int handle, list;
    std::atomic<int> executed{0}, taken{0};
};

// Runs what it is given, first come first served.
int in_order(void* of) {
    auto& s = *static_cast<scheduler*>(of);
    const completion_list_data* const items = dequeue_ums_completion_list_items(s.handle);
    if (items == nullptr) return -1;
    EXPECT_EQ(items->id, s.list);
    EXPECT_NE(items->head, nullptr);
    for (const ums_worker_thread_data* one = items->head; one != nullptr; one = one->next) {
        EXPECT_EQ(one->completion_list_id, s.list);
        const int got = execute_ums_thread(s.handle, one->pid, s.list);
        if (got == 0) ++s.executed;
        if (got == -EACCES) ++s.taken;
        EXPECT_TRUE(got == 0 || got == -EACCES || got == -EBADF) << got;
    }
    return 0;
}

void run(scheduler& s) { EXPECT_EQ(enter_ums_scheduling_mode(s.handle, in_order, &s, s.list), 0); }

struct job {
    int handle = 0, yields = 0;
    std::atomic<int> steps{0}, inside{0};
};
int step(void* of) {
    auto& j = *static_cast<job*>(of);
    for (int i = 0; i < j.yields; ++i) {
        if (j.inside.exchange(1) != 0) std::abort();
        ++j.steps;
        j.inside = 0;
        EXPECT_EQ(ums_thread_yield(j.handle), 0);
    }
    ++j.steps;
    return 7;
}

TEST_F(linux_names, workers_run_yield_and_end) {
    const int handle = ums_init();
    ASSERT_GT(handle, 0);
    const completion_list_data* const list = create_completion_list(handle);
    ASSERT_NE(list, nullptr);
    std::vector<job> jobs(5);
    for (job& j : jobs) {
        j.handle = handle;
        j.yields = 10;
        EXPECT_GT(add_worker_thread(handle, step, &j, list->id), 0);
    }
    scheduler s{handle, list->id};
    std::thread thread{[&] { run(s); }};
    EXPECT_EQ(release_ums(handle), 0);
    thread.join();
    for (const job& j : jobs) EXPECT_EQ(j.steps, 11);
    EXPECT_EQ(s.executed, 55);
    EXPECT_EQ(ums_close(handle), 0);
}

TEST_F(linux_names, several_schedulers_share_a_list) {
    const int n = scaled(300, 60);
    const int first = ums_init(), second = ums_init(), third = ums_init();
    const int list = create_completion_list(first)->id;
    std::vector<job> jobs(static_cast<std::size_t>(n));
    for (job& j : jobs) {
        j.handle = first;
        j.yields = 5;
        EXPECT_GT(add_worker_thread(first, step, &j, list), 0);
    }
    scheduler a{first, list}, b{second, list}, c{third, list};
    std::thread run_a{[&] { run(a); }}, run_b{[&] { run(b); }}, run_c{[&] { run(c); }};
    EXPECT_EQ(release_ums(first), 0);
    EXPECT_EQ(release_ums(second), 0);
    EXPECT_EQ(release_ums(third), 0);
    for (std::thread* t : {&run_a, &run_b, &run_c}) t->join();
    for (const job& j : jobs) EXPECT_EQ(j.steps, 6);
    EXPECT_EQ(a.executed + b.executed + c.executed, 6 * n);
    for (const int h : {first, second, third}) EXPECT_EQ(ums_close(h), 0);
}

int sleeps(void* steps) {
    ums_worker_blocking_enter();
    const timespec ms{0, 1'000'000};
    nanosleep(&ms, nullptr);
    ums_worker_blocking_leave();
    ++*static_cast<std::atomic<int>*>(steps);
    return exit_worker_thread(0);
}

TEST_F(linux_names, a_worker_that_blocks_gives_its_scheduler_back) {
    const int handle = ums_init();
    const int list = create_completion_list(handle)->id;
    std::atomic<int> steps{0};
    for (int i = 0; i < 20; ++i) EXPECT_GT(add_worker_thread(handle, sleeps, &steps, list), 0);
    scheduler s{handle, list};
    std::thread thread{[&] { run(s); }};
    EXPECT_EQ(release_ums(handle), 0);
    thread.join();
    EXPECT_EQ(steps, 20);
    EXPECT_EQ(s.executed, 40);
    EXPECT_EQ(ums_close(handle), 0);
}

int leave_at_once(void*) { return -1; }

TEST_F(linux_names, wrong_use_is_refused) {
    EXPECT_EQ(create_completion_list(-1), nullptr);
    EXPECT_EQ(add_worker_thread(-1, step, nullptr, 1), -EBADF);
    EXPECT_EQ(enter_ums_scheduling_mode(-1, leave_at_once, nullptr, 1), -EBADF);
    EXPECT_EQ(dequeue_ums_completion_list_items(1), nullptr);
    EXPECT_EQ(execute_ums_thread(1, 1, 1), -EPERM);
    EXPECT_EQ(ums_thread_yield(1), -EPERM);
    EXPECT_EQ(exit_worker_thread(1), -EPERM);
    EXPECT_EQ(destroy_comp_list(-1, 1), -EBADF);
    EXPECT_EQ(release_ums(-1), -EBADF);
    EXPECT_EQ(ums_close(-1), -EBADF);

    const int handle = ums_init();
    const int list = create_completion_list(handle)->id;
    EXPECT_EQ(add_worker_thread(handle, nullptr, nullptr, list), -EINVAL);
    EXPECT_EQ(enter_ums_scheduling_mode(handle, nullptr, nullptr, list), -EINVAL);
    EXPECT_EQ(enter_ums_scheduling_mode(handle, leave_at_once, nullptr, list), 0);
    EXPECT_EQ(ums_close(handle), -EBUSY);
    EXPECT_EQ(destroy_comp_list(handle, -1), -EBADF);
    EXPECT_EQ(destroy_comp_list(handle, list), 0);
    EXPECT_EQ(add_worker_thread(handle, step, nullptr, list), -EACCES);
    EXPECT_EQ(release_ums(handle), 0);
    EXPECT_EQ(ums_close(handle), 0);
    EXPECT_EQ(ums_close(handle), -EBADF);
}

}  // namespace
