// SPDX-License-Identifier: MIT
// variants: clang
// The Linux modules' names.
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <pthread.h>
#include <sched.h>
#include <semaphore>
#include <string>
#include <sys/syscall.h>
#include <thread>
#include <time.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "support/child.hpp"
#include "support/conservation.hpp"
#include "support/refused_call.hpp"
#include "support/scale.hpp"
#include "ums/compat/linux_ums.h"
#include "ums/ums_scheduling.h"

namespace {

// The next thread that this one makes does not begin before it may.
struct late_start {
    std::atomic<bool> is_made{false};
    std::binary_semaphore may_begin{0};
    void* (*function)(void*) = nullptr;
    void* argument = nullptr;
};
thread_local late_start* late = nullptr;

}  // namespace

#if !defined(UMS_TEST_ASAN) && !defined(UMS_TEST_TSAN)
// In place of the C library's. The sanitizers have one of their own.
extern "C" int pthread_create(pthread_t* made, const pthread_attr_t* attributes,
                              void* (*function)(void*), void* argument) noexcept {
    using call = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
    static call* const real = reinterpret_cast<call*>(::dlsym(RTLD_NEXT, "pthread_create"));
    late_start* const held = std::exchange(late, nullptr);
    if (held == nullptr) return real(made, attributes, function, argument);
    held->function = function;
    held->argument = argument;
    const auto begin = [](void* of) -> void* {
        auto& h = *static_cast<late_start*>(of);
        h.may_begin.acquire();
        return h.function(h.argument);
    };
    const int failed = real(made, attributes, begin, held);
    held->is_made = true;
    return failed;
}
#define CAN_HOLD_UP true
#else
#define CAN_HOLD_UP false
#endif

namespace {

class linux_names : public conserving_test {};

struct scheduler {
    int handle;
    ums_pid_t list;
    std::atomic<int> executed{0}, taken{0};
};

// Runs the workers it is given, first come, first served.
int in_order(void* of) {
    auto& s = *static_cast<scheduler*>(of);
    completion_list_data* const items = dequeue_ums_completion_list_items(s.handle);
    if (items == nullptr) return -1;
    EXPECT_EQ(items->id, s.list);
    EXPECT_NE(items->head, nullptr);
    for (const ums_worker_thread_data* one = items->head; one != nullptr; one = one->next) {
        EXPECT_EQ(one->completion_list_id, s.list);
        const int got = execute_ums_thread(s.handle, one->pid, items);
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
        EXPECT_EQ(add_worker_thread(handle, step, &j, list->id), 0);
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
    const ums_pid_t list = create_completion_list(first)->id;
    std::vector<job> jobs(static_cast<std::size_t>(n));
    for (job& j : jobs) {
        j.handle = first;
        j.yields = 5;
        EXPECT_EQ(add_worker_thread(first, step, &j, list), 0);
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
    const ums_pid_t list = create_completion_list(handle)->id;
    std::atomic<int> steps{0};
    for (int i = 0; i < 20; ++i) EXPECT_EQ(add_worker_thread(handle, sleeps, &steps, list), 0);
    scheduler s{handle, list};
    std::thread thread{[&] { run(s); }};
    EXPECT_EQ(release_ums(handle), 0);
    thread.join();
    EXPECT_EQ(steps, 20);
    EXPECT_EQ(s.executed, 40);
    EXPECT_EQ(ums_close(handle), 0);
}

int does_nothing(void*) { return 0; }

// The shape of the published report's test: threads of two handles share a list, and execute one
// worker each time they ask. No thread continues before all threads have run a worker.
struct crowd {
    std::atomic<int> ran{0}, arrived{0};
    int everybody = 0;
};
struct crowd_thread {
    int handle;
    ums_pid_t list;
    std::atomic<int> executed{0};
};
int execute_one(void* of) {
    auto& t = *static_cast<crowd_thread*>(of);
    completion_list_data* const items = dequeue_ums_completion_list_items(t.handle);
    if (items == nullptr) return -1;
    for (auto* one = items->head; one != nullptr; one = one->next) {
        const int got = execute_ums_thread(t.handle, one->pid, items);
        if (got == 0) ++t.executed;
        if (got != -EACCES && got != -EBADF) break;
    }
    return 0;
}

int run_in_crowd(void* of) {
    auto& c = *static_cast<crowd*>(of);
    const int number = ++c.ran;
    if (number <= c.everybody) {
        ++c.arrived;
        while (c.arrived < c.everybody) sched_yield();
    }
    return 0;
}

TEST_F(linux_names, all_threads_of_all_handles_execute_workers) {
    const int n = scaled(20'000, 500);
    const int handles[] = {ums_init(), ums_init()};
    const ums_pid_t list = create_completion_list(handles[0])->id;
    crowd c;
    c.everybody = 8;
    for (int i = 0; i < n; ++i) ASSERT_EQ(add_worker_thread(handles[0], run_in_crowd, &c, list), 0);
    std::vector<crowd_thread> all(8);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < all.size(); ++i) {
        all[i].handle = handles[i % 2];
        all[i].list = list;
        threads.emplace_back([&t = all[i]] {
            EXPECT_EQ(enter_ums_scheduling_mode(t.handle, execute_one, &t, t.list), 0);
        });
    }
    for (int i = 0; i < n; ++i) ASSERT_EQ(add_worker_thread(handles[0], run_in_crowd, &c, list), 0);
    EXPECT_EQ(destroy_comp_list(handles[0], list), 0);
    for (const int h : handles) EXPECT_EQ(release_ums(h), 0);
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(c.ran, 2 * n);
    int sum = 0;
    for (const crowd_thread& t : all) {
        EXPECT_GT(t.executed, 0);
        sum += t.executed;
    }
    EXPECT_EQ(sum, 2 * n);
    for (const int h : handles) EXPECT_EQ(ums_close(h), 0);
}

TEST_F(linux_names, twenty_thousand_ready_workers_on_two_lists_and_eight_threads) {
    const int n = scaled(10'000, 250);
    const int handle = ums_init();
    const ums_pid_t lists[] = {create_completion_list(handle)->id,
                               create_completion_list(handle)->id};
    std::vector<job> jobs(static_cast<std::size_t>(2 * n));
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        jobs[i].handle = handle;
        jobs[i].yields = i % 100 == 0 ? 3 : 0;
        ASSERT_EQ(add_worker_thread(handle, step, &jobs[i], lists[i % 2]), 0);
    }
    std::vector<crowd_thread> all(8);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < all.size(); ++i) {
        all[i].handle = handle;
        all[i].list = lists[i % 2];
        threads.emplace_back([&t = all[i]] {
            EXPECT_EQ(enter_ums_scheduling_mode(t.handle, execute_one, &t, t.list), 0);
        });
    }
    EXPECT_EQ(release_ums(handle), 0);
    for (std::thread& t : threads) t.join();
    int executed = 0;
    for (const crowd_thread& t : all) executed += t.executed;
    EXPECT_EQ(executed, 2 * n + 2 * n / 100 * 3);
    for (const job& j : jobs) EXPECT_EQ(j.steps, j.yields + 1);
    EXPECT_EQ(ums_close(handle), 0);
}

// A worker adds another, for which a second thread is made, which begins late. Meanwhile the first
// worker ends, and its thread runs the other.
struct late_thread {
    int handle = 0;
    ums_pid_t list = 0;
    late_start start;
    std::atomic<bool> is_closing{false}, is_closed{false};
};
int ends_once_another_is_made(void* of) {
    auto& l = *static_cast<late_thread*>(of);
    EXPECT_EQ(add_worker_thread(l.handle, does_nothing, nullptr, l.list), 0);
    while (!l.start.is_made) EXPECT_EQ(ums_thread_yield(l.handle), 0);
    return 0;
}
int execute_each(void* of) {
    auto& l = *static_cast<late_thread*>(of);
    const completion_list_data* const items = dequeue_ums_completion_list_items(l.handle);
    if (items == nullptr) return -1;
    for (const auto* one = items->head; one != nullptr; one = one->next) {
        if (one->work == does_nothing && !l.start.is_made) late = &l.start;
        (void)execute_ums_thread(l.handle, one->pid, nullptr);
        late = nullptr;
    }
    return 0;
}

char state_of(int tid) {
    std::ifstream file{"/proc/self/task/" + std::to_string(tid) + "/stat"};
    std::string line;
    std::getline(file, line);
    const std::size_t name_end = line.rfind(')');
    return name_end + 2 < line.size() ? line[name_end + 2] : 'X';
}

TEST_F(linux_names, a_thread_that_begins_late_is_not_left_by_the_last_close) {
    if (!CAN_HOLD_UP) GTEST_SKIP() << "a sanitizer has a pthread_create() of its own";
    late_thread l;
    l.handle = ums_init();
    l.list = create_completion_list(l.handle)->id;
    EXPECT_EQ(add_worker_thread(l.handle, ends_once_another_is_made, &l, l.list), 0);
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i)
        threads.emplace_back(
            [&] { EXPECT_EQ(enter_ums_scheduling_mode(l.handle, execute_each, &l, l.list), 0); });
    EXPECT_EQ(release_ums(l.handle), 0);
    for (std::thread& t : threads) t.join();
    ASSERT_TRUE(l.start.is_made);
    // Once ums_close() waits for it, or has not waited.
    std::thread opener{[&l, closer = ::gettid()] {
        while (!l.is_closing) std::this_thread::yield();
        while (!l.is_closed && state_of(closer) != 'S') std::this_thread::yield();
        l.start.may_begin.release();
    }};
    l.is_closing = true;
    EXPECT_EQ(ums_close(l.handle), 0);
    l.is_closed = true;
    opener.join();
}

// A program may release a handle before the threads that it made for the handle have entered.
TEST_F(linux_names, a_thread_that_enters_after_the_release_serves_what_is_left) {
    const int adder = ums_init(), server = ums_init();
    const ums_pid_t list = create_completion_list(adder)->id;
    std::vector<job> jobs(5);
    for (job& j : jobs) {
        j.yields = 3;
        EXPECT_EQ(add_worker_thread(adder, step, &j, list), 0);
    }
    EXPECT_EQ(release_ums(server), 0);
    scheduler s{server, list};
    run(s);
    for (const job& j : jobs) ASSERT_EQ(j.steps, 4);
    EXPECT_EQ(ums_close(server), 0);
    EXPECT_EQ(release_ums(adder), 0);
    EXPECT_EQ(ums_close(adder), 0);
}

// Several such threads wait when the last worker ends.
TEST_F(linux_names, threads_that_enter_after_the_release_all_return) {
    for (int i = 0; i < scaled(500, 50); ++i) {
        const int adder = ums_init(), server = ums_init();
        const ums_pid_t list = create_completion_list(adder)->id;
        job j;
        EXPECT_EQ(add_worker_thread(adder, step, &j, list), 0);
        EXPECT_EQ(release_ums(server), 0);
        scheduler a{server, list}, b{server, list};
        std::thread other{[&] { run(a); }};
        run(b);
        other.join();
        EXPECT_EQ(j.steps, 1);
        for (const int h : {server, adder}) EXPECT_EQ(release_ums(h), 0);
        for (const int h : {server, adder}) EXPECT_EQ(ums_close(h), 0);
    }
}

// A worker that is executed by a thread of another list, and yields, belongs to that list then.
struct mover {
    int handle;
    ums_pid_t list;
    std::atomic<ums_pid_t>* pid;
    pid_t releaser;
    std::atomic<bool> is_released{false}, has_moved{false};
};
int names_the_first(void* of) {
    auto& m = *static_cast<mover*>(of);
    completion_list_data* const items = dequeue_ums_completion_list_items(m.handle);
    if (items == nullptr) return -1;
    *m.pid = items->head->pid;
    return 0;
}
int moves_it(void* of) {
    auto& m = *static_cast<mover*>(of);
    if (!m.has_moved) {
        while (*m.pid == 0 || state_of(m.releaser) != 'S') std::this_thread::yield();
        EXPECT_EQ(execute_ums_thread(m.handle, *m.pid, nullptr), 0);
        m.has_moved = true;
        while (!m.is_released) std::this_thread::yield();
    }
    completion_list_data* const items = dequeue_ums_completion_list_items(m.handle);
    if (items == nullptr) return -1;
    EXPECT_EQ(execute_ums_thread(m.handle, items->head->pid, items), 0);
    return 0;
}

TEST_F(linux_names, a_release_does_not_wait_for_a_worker_that_has_left_its_list) {
    const int first = ums_init(), second = ums_init();
    const ums_pid_t left = create_completion_list(first)->id;
    const ums_pid_t entered = create_completion_list(second)->id;
    job j;
    j.yields = 1;
    EXPECT_EQ(add_worker_thread(second, step, &j, left), 0);
    std::atomic<ums_pid_t> pid{0};
    mover a{first, left, &pid, 0}, b{second, entered, &pid, ::gettid()};
    std::thread names{[&] { enter_ums_scheduling_mode(first, names_the_first, &a, left); }};
    while (pid == 0) std::this_thread::yield();  // It has entered.
    std::thread moves{[&] { enter_ums_scheduling_mode(second, moves_it, &b, entered); }};
    EXPECT_EQ(release_ums(first), 0);
    EXPECT_EQ(j.steps, 1);
    b.is_released = true;
    EXPECT_EQ(release_ums(second), 0);
    EXPECT_EQ(j.steps, 2);
    names.join();
    moves.join();
    for (const int h : {first, second}) EXPECT_EQ(ums_close(h), 0);
}

struct last_first {
    int handle;
    std::vector<std::size_t> listed;
    std::vector<ums_pid_t> order;
};
int execute_last(void* of) {
    auto& l = *static_cast<last_first*>(of);
    completion_list_data* const items = dequeue_ums_completion_list_items(l.handle);
    if (items == nullptr) return -1;
    std::size_t n = 0;
    auto* last = items->head;
    for (auto* one = items->head; one != nullptr; one = one->next, ++n) last = one;
    l.listed.push_back(n);
    l.order.push_back(last->pid);
    EXPECT_EQ(execute_ums_thread(l.handle, last->pid, items), 0);
    return 0;
}

TEST_F(linux_names, every_ready_worker_is_listed_and_any_may_be_executed) {
    const int handle = ums_init();
    const ums_pid_t list = create_completion_list(handle)->id;
    for (int i = 0; i < 300; ++i)
        EXPECT_EQ(add_worker_thread(handle, does_nothing, nullptr, list), 0);
    last_first l{handle, {}, {}};
    std::thread thread{[&] { enter_ums_scheduling_mode(handle, execute_last, &l, list); }};
    EXPECT_EQ(release_ums(handle), 0);
    thread.join();
    ASSERT_EQ(l.listed.size(), 300u);
    for (std::size_t i = 0; i < l.listed.size(); ++i) EXPECT_EQ(l.listed[i], 300 - i);
    for (std::size_t i = 1; i < l.order.size(); ++i) EXPECT_LT(l.order[i], l.order[i - 1]);
    EXPECT_EQ(ums_close(handle), 0);
}

int exits_in_the_middle(void* of) {
    auto& count = *static_cast<std::atomic<int>*>(of);
    if (++count % 2 == 0) exit_worker_thread(0);
    if (count % 3 == 0) pthread_exit(nullptr);
    return 0;
}

TEST_F(linux_names, workers_end_by_returning_by_exit_and_by_pthread_exit) {
    const int handle = ums_init();
    const ums_pid_t list = create_completion_list(handle)->id;
    std::atomic<int> count{0};
    const int n = scaled(600, 60);
    for (int i = 0; i < n; ++i)
        EXPECT_EQ(add_worker_thread(handle, exits_in_the_middle, &count, list), 0);
    crowd_thread t{handle, list};
    std::thread thread{[&] { enter_ums_scheduling_mode(handle, execute_one, &t, list); }};
    EXPECT_EQ(release_ums(handle), 0);
    thread.join();
    EXPECT_EQ(count, n);
    // One that blocks on its way, for example in a page fault, is executed again.
    EXPECT_GE(t.executed, n);
    EXPECT_EQ(ums_close(handle), 0);
}

int leave_at_once(void*) { return -1; }

// Confines the calling thread, and those it starts, to one CPU: then a thread that ends continues
// to its end after it has woken the waiter.
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
        const ums_pid_t list = create_completion_list(owner)->id;
        EXPECT_EQ(add_worker_thread(user, does_nothing, nullptr, list), 0);
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
                const ums_pid_t list = create_completion_list(handle)->id;
                EXPECT_EQ(add_worker_thread(handle, does_nothing, nullptr, list), 0);
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
        const ums_pid_t list = create_completion_list(owner)->id;
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

// Runs in the child: the kernel refuses new threads once `bodies` workers have begun. Of eight
// workers that yield, each gets its turn once others have ended.
int run_with_few_threads() {
    ::alarm(120);  // Instead of an endless wait.
    const int handle = ums_init();
    scheduler s{handle, create_completion_list(handle)->id};
    std::vector<job> jobs(8);
    for (job& j : jobs) {
        j.handle = handle;
        j.yields = 3;
        if (add_worker_thread(handle, step, &j, s.list) != 0) std::abort();
    }
    struct limited {
        scheduler& s;
        int begun = 0, refused = 0;
    } few{s};
    std::thread thread{[&] {
        enter_ums_scheduling_mode(
            handle,
            [](void* of) {
                auto& f = *static_cast<limited*>(of);
                completion_list_data* const items = dequeue_ums_completion_list_items(f.s.handle);
                if (items == nullptr) return -1;
                for (auto* one = items->head; one != nullptr; one = one->next) {
                    const int got = execute_ums_thread(f.s.handle, one->pid, items);
                    if (got == -EACCES) ++f.refused;
                    if (got == 0 && ++f.begun == 2 &&
                        (!refuse_call(SYS_clone3, EAGAIN) || !refuse_call(SYS_clone, EAGAIN)))
                        ::_exit(77);
                }
                return 0;
            },
            &few, s.list);
    }};
    if (release_ums(handle) != 0) std::abort();
    thread.join();
    for (const job& j : jobs)
        if (j.steps != 4) ::_exit(1);
    ::_exit(few.refused > 0 && ums_close(handle) == 0 ? 0 : 2);
}
const child_program few_threads{"few_threads",
                                [](const child_arguments&) { return run_with_few_threads(); }};

TEST_F(linux_names, workers_wait_for_threads_that_the_kernel_refuses) {
    const child_end end = run_child("few_threads");
    if (end.code == 77) GTEST_SKIP() << "no seccomp filters here";
    EXPECT_EQ(end.code, 0) << end;
}

// Runs in the child: there is no thread at all.
int run_without_threads() {
    const int handle = ums_init();
    const ums_pid_t list = create_completion_list(handle)->id;
    if (add_worker_thread(handle, does_nothing, nullptr, list) != 0) std::abort();
    int got = 0;
    struct arguments {
        int handle, *got;
    } given{handle, &got};
    if (!refuse_call(SYS_clone3, EAGAIN) || !refuse_call(SYS_clone, EAGAIN)) ::_exit(77);
    enter_ums_scheduling_mode(
        handle,
        [](void* of) {
            auto& a = *static_cast<arguments*>(of);
            completion_list_data* const items = dequeue_ums_completion_list_items(a.handle);
            *a.got = execute_ums_thread(a.handle, items->head->pid, items);
            return -1;
        },
        &given, list);
    ::_exit(got == -EAGAIN ? 0 : 1);
}
const child_program no_threads{"no_threads",
                               [](const child_arguments&) { return run_without_threads(); }};

TEST_F(linux_names, a_worker_without_a_thread_is_told) {
    const child_end end = run_child("no_threads");
    if (end.code == 77) GTEST_SKIP() << "no seccomp filters here";
    EXPECT_EQ(end.code, 0) << end;
}

std::string text_of(const std::filesystem::path& at) {
    std::ifstream file{at};
    return {std::istreambuf_iterator<char>{file}, {}};
}

// Runs in the child: a worker looks at the files that its own execution brings up to date.
struct look {
    int handle = 0, tid = 0, wrong = 0;
    std::filesystem::path root;
    ums_pid_t list = 0, worker = 0;
};
void find(look& l, const std::filesystem::path& at, const std::string& line, int which) {
    if (l.wrong == 0 && ("\n" + text_of(at)).find("\n" + line + "\n") == std::string::npos)
        l.wrong = which;
}
int look_at_files(void* of) {
    auto& l = *static_cast<look*>(of);
    const auto folder = l.root / std::to_string(l.handle) / "schedulers" / std::to_string(l.tid);
    const auto info = folder / "info", its = folder / "workers" / std::to_string(l.worker);
    // They are written at most once a second.
    while (text_of(its).empty()) ums_thread_yield(0);
    find(l, info, "scheduler thread: " + std::to_string(l.tid), 1);
    find(l, info, "completion list: " + std::to_string(l.list), 2);
    find(l, its, "worker: " + std::to_string(l.worker), 3);
    find(l, its, "scheduler thread: " + std::to_string(l.tid), 4);
    if (text_of(info).find("last switch ns: ") == std::string::npos) l.wrong = 5;
    if (text_of(info).find("mean switch ns: ") == std::string::npos) l.wrong = 6;
    return 0;
}
int look_at_info() {
    const char* const directory = std::getenv("UMS_STATS_DIRECTORY");
    look l;
    l.root = std::filesystem::path{directory} / std::to_string(::getpid()) / "ums";
    if (std::string{ums_scheduling_stats_directory()} != directory) return 10;
    l.handle = ums_init();
    l.list = create_completion_list(l.handle)->id;
    if (add_worker_thread(l.handle, look_at_files, &l, l.list) != 0) return 11;
    std::thread thread{[&] {
        l.tid = ::gettid();
        enter_ums_scheduling_mode(
            l.handle,
            [](void* of) {
                auto& given = *static_cast<look*>(of);
                completion_list_data* const items = dequeue_ums_completion_list_items(given.handle);
                if (items == nullptr) return -1;
                given.worker = items->head->pid;
                return execute_ums_thread(given.handle, given.worker, items);
            },
            &l, l.list);
    }};
    if (release_ums(l.handle) != 0) return 12;
    thread.join();
    if (std::filesystem::exists(l.root / std::to_string(l.handle) / "schedulers" /
                                std::to_string(l.tid)))
        return 13;
    if (ums_close(l.handle) != 0 || std::filesystem::exists(l.root / std::to_string(l.handle)))
        return 14;
    return l.wrong;
}
const child_program info{"info", [](const child_arguments&) { return look_at_info(); }};

TEST_F(linux_names, files_tell_of_scheduler_threads_and_workers_by_the_programs_numbers) {
    char directory[] = "/tmp/ums-test-XXXXXX";
    ASSERT_NE(::mkdtemp(directory), nullptr);
    const child_end end = run_child("info", {}, {{"UMS_STATS_DIRECTORY", directory}});
    EXPECT_EQ(end.code, 0) << end;
    EXPECT_TRUE(std::filesystem::is_empty(directory));
    std::filesystem::remove_all(directory);
}

TEST_F(linux_names, wrong_use_is_refused) {
    EXPECT_EQ(create_completion_list(-1), nullptr);
    EXPECT_EQ(add_worker_thread(-1, step, nullptr, 1), -EBADF);
    EXPECT_EQ(enter_ums_scheduling_mode(-1, leave_at_once, nullptr, 1), -EBADF);
    EXPECT_EQ(dequeue_ums_completion_list_items(1), nullptr);
    EXPECT_EQ(execute_ums_thread(1, 1, nullptr), -EPERM);
    EXPECT_EQ(execute_ums_thread_by_id(1, 1, 1), -EPERM);
    EXPECT_EQ(ums_thread_yield(1), -EPERM);
    EXPECT_EQ(exit_worker_thread(1), -EPERM);
    EXPECT_EQ(destroy_comp_list(-1, 1), -EBADF);
    EXPECT_EQ(release_ums(-1), -EBADF);
    EXPECT_EQ(ums_close(-1), -EBADF);

    const int handle = ums_init();
    const ums_pid_t list = create_completion_list(handle)->id;
    EXPECT_EQ(add_worker_thread(handle, nullptr, nullptr, list), -EINVAL);
    EXPECT_EQ(enter_ums_scheduling_mode(handle, nullptr, nullptr, list), -EINVAL);
    EXPECT_EQ(enter_ums_scheduling_mode(handle, leave_at_once, nullptr, list), 0);
    EXPECT_EQ(ums_close(handle), -EBUSY);
    EXPECT_EQ(destroy_comp_list(handle, 12345), -EBADF);
    EXPECT_EQ(errno, EBADF);
    EXPECT_EQ(destroy_comp_list(handle, list), 0);
    EXPECT_EQ(add_worker_thread(handle, step, nullptr, list), -EACCES);
    EXPECT_EQ(release_ums(handle), 0);
    EXPECT_EQ(ums_close(handle), 0);
    EXPECT_EQ(ums_close(handle), -EBADF);
}

}  // namespace
