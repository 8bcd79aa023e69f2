// SPDX-License-Identifier: MIT
// variants: clang
// The Linux modules' names.
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sched.h>
#include <sys/syscall.h>
#include <thread>
#include <time.h>
#include <unistd.h>
#include <vector>

#include "support/child.hpp"
#include "support/conservation.hpp"
#include "support/refused_call.hpp"
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

int does_nothing(void*) { return 0; }
int leave_at_once(void*) { return -1; }

// The calling thread, and those it starts, on one CPU: who ends goes on to its end after who waits for it was woken.
class on_one_cpu {
public:
    on_one_cpu() {
        EXPECT_EQ(::sched_getaffinity(0, sizeof before_, &before_), 0);
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(::sched_getcpu(), &one);
        EXPECT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    }
    ~on_one_cpu() { ::sched_setaffinity(0, sizeof before_, &before_); }
    on_one_cpu(const on_one_cpu&) = delete;
    on_one_cpu& operator=(const on_one_cpu&) = delete;

private:
    cpu_set_t before_;
};

TEST_F(linux_names, a_handle_is_closed_whose_worker_is_just_ending_on_anothers_list) {
    const on_one_cpu here;
    for (int i = 0; i < scaled(2000, 100); ++i) {
        const int owner = ums_init(), user = ums_init();
        const int list = create_completion_list(owner)->id;
        EXPECT_GT(add_worker_thread(user, does_nothing, nullptr, list), 0);
        scheduler s{user, list};
        std::thread thread{[&] { run(s); }};
        EXPECT_EQ(release_ums(user), 0);
        thread.join();
        EXPECT_EQ(ums_close(user), 0);
        EXPECT_EQ(release_ums(owner), 0);
        EXPECT_EQ(ums_close(owner), 0);
    }
}

TEST_F(linux_names, handles_of_several_threads_come_and_go) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([] {
            for (int round = 0; round < scaled(500, 100); ++round) {
                const int handle = ums_init();
                const int list = create_completion_list(handle)->id;
                EXPECT_GT(add_worker_thread(handle, does_nothing, nullptr, list), 0);
                scheduler s{handle, list};
                std::thread thread{[&] { run(s); }};
                EXPECT_EQ(release_ums(handle), 0);
                thread.join();
                EXPECT_EQ(ums_close(handle), 0);
            }
        });
    for (std::thread& t : threads) t.join();
}

TEST_F(linux_names, a_list_is_closed_while_others_enter_with_it) {
    for (int round = 0; round < scaled(1000, 100); ++round) {
        const int owner = ums_init(), user = ums_init();
        const int list = create_completion_list(owner)->id;
        EXPECT_EQ(release_ums(owner), 0);
        std::thread thread{[&] {
            const int got = enter_ums_scheduling_mode(user, leave_at_once, nullptr, list);
            EXPECT_TRUE(got == 0 || got == -EBADF) << got;
        }};
        int closed = 0;
        while ((closed = ums_close(owner)) == -EBUSY) {
        }
        EXPECT_EQ(closed, 0);
        thread.join();
        EXPECT_EQ(release_ums(user), 0);
        EXPECT_EQ(ums_close(user), 0);
    }
}

// The next thread of this process gets the id `wanted`, if nobody else starts one.
bool ask_for_id(int wanted) {
    std::ofstream file{"/proc/sys/kernel/ns_last_pid"};
    file << wanted - 1 << std::flush;
    return file.good();
}

TEST_F(linux_names, the_end_of_a_handle_leaves_anothers_worker_that_has_the_id_of_one_of_its_own) {
    const int first = ums_init(), second = ums_init();
    const int first_list = create_completion_list(first)->id;
    const int second_list = create_completion_list(second)->id;
    const int id = add_worker_thread(first, does_nothing, nullptr, first_list);
    scheduler a{first, first_list}, b{second, second_list};
    std::thread run_a{[&] { run(a); }};
    EXPECT_EQ(release_ums(first), 0);
    run_a.join();
    job work;
    bool is_met = false;
    int added = 0;
    for (int tries = 0; !is_met && tries < 1000 && ask_for_id(id); ++tries, ++added)
        is_met = add_worker_thread(second, step, &work, second_list) == id;
    EXPECT_EQ(ums_close(first), 0);
    std::thread run_b{[&] { run(b); }};
    EXPECT_EQ(release_ums(second), 0);
    run_b.join();
    EXPECT_EQ(work.steps, added);
    EXPECT_EQ(b.executed, added);
    EXPECT_EQ(ums_close(second), 0);
    if (!is_met) GTEST_SKIP() << "a thread's id cannot be chosen here";
}

// In the child: the kernel refuses new threads to one that adds workers while another waits for the last of them.
int add_in_vain() {
    ::alarm(120);  // Instead of a wait without end.
    std::atomic<int> handle = 0, rounds = 0;
    std::thread waits{[&] {
        for (int h; (h = handle.exchange(0)) >= 0;) {
            if (h == 0) {
                std::this_thread::yield();
                continue;
            }
            if (release_ums(h) != 0 || ums_close(h) != 0) std::abort();
            ++rounds;
        }
    }};
    if (!refuse_call(SYS_clone3, EAGAIN) || !refuse_call(SYS_clone, EAGAIN)) ::_exit(77);
    int wrong = 0;
    const int n = scaled(100, 20);
    for (int i = 0; i < n; ++i) {
        const int h = ums_init(), list = create_completion_list(h)->id;
        handle = h;
        for (int got = 0; got != -EBADF;)
            if ((got = add_worker_thread(h, does_nothing, nullptr, list)) >= 0) wrong = 1;
        while (rounds <= i) std::this_thread::yield();
    }
    handle = -1;
    waits.join();
    ::_exit(wrong);  // A search for leaks at exit() would need a thread.
}
const child_program in_vain{"in_vain", [](const child_arguments&) { return add_in_vain(); }};

TEST_F(linux_names, a_worker_that_could_not_be_made_is_not_waited_for) {
    const child_end end = run_child("in_vain");
    if (end.code == 77) GTEST_SKIP() << "no seccomp filters here";
    EXPECT_EQ(end.code, 0) << end;
}

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

int main(int argc, char** argv) { return child_main(argc, argv); }
