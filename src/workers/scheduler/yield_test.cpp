// SPDX-License-Identifier: MIT
// variants: monitor clang
//
// Workers that are executed, yield, end and move between schedulers; and what each worker has of
// its own.

#include <atomic>
#include <cerrno>
#include <cfenv>
#include <csignal>
#include <deque>
#include <memory>
#include <mutex>
#include <sched.h>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "os/system.hpp"
#include "support/conservation.hpp"
#include "support/no_detection.hpp"
#include "support/round_robin.hpp"
#include "support/scale.hpp"

namespace {

class yield_test : public conserving_test {};

TEST_F(yield_test, a_worker_never_runs_before_it_is_executed) {
    completion_list list;
    std::atomic<int> ran = 0;
    test_worker w{list, [&] { ++ran; }};
    ums_context_t c = 0;
    ASSERT_EQ(ums_completion_list_dequeue(list, UMS_NEVER, &c), 0);
    EXPECT_EQ(c, w.context());
    EXPECT_EQ(ums_context_next(c), 0u);
    EXPECT_EQ(ran.load(), 0);
    schedule(list, [&](ums_reason_t reason, std::uintptr_t, void*) {
        EXPECT_EQ(ran.load(), reason == UMS_REASON_STARTUP ? 0 : 1);
        if (reason == UMS_REASON_STARTUP) ums_worker_execute(c);
    });
    EXPECT_EQ(ran.load(), 1);
    ASSERT_EQ(ums_completion_list_dequeue(list, UMS_NEVER, &c), 0);
    EXPECT_TRUE(is_terminated(c));
}

TEST_F(yield_test, the_end_is_told_as_blocked_and_the_context_comes_terminated) {
    completion_list list;
    test_worker w{list, [] { return 42; }};
    round_robin s{list, 1};
    s.run();
    EXPECT_EQ(s.startups, 1);
    EXPECT_EQ(s.blocked, 1);
    EXPECT_EQ(s.yields, 0);
    EXPECT_EQ(w.join(), 42);
}

TEST_F(yield_test, a_yield_brings_the_context_and_the_argument) {
    completion_list list;
    int argument = 0;
    test_worker w{list, [&] { EXPECT_EQ(ums_worker_yield(&argument), 0); }};
    std::vector<int> reasons;
    schedule(list, [&](ums_reason_t reason, std::uintptr_t payload, void* parameter) {
        reasons.push_back(reason);
        if (reason == UMS_REASON_STARTUP) {
            EXPECT_EQ(payload, 0u);
            ums_context_t c = 0;
            EXPECT_EQ(ums_completion_list_dequeue(list, UMS_NEVER, &c), 0);
            ums_worker_execute(c);
        } else if (reason == UMS_REASON_YIELD) {
            EXPECT_EQ(payload, w.context());
            EXPECT_EQ(parameter, &argument);
            ums_worker_execute(payload);
        } else {
            EXPECT_EQ(payload, 1u);
            EXPECT_EQ(parameter, nullptr);
        }
    });
    EXPECT_EQ(reasons,
              (std::vector<int>{UMS_REASON_STARTUP, UMS_REASON_YIELD, UMS_REASON_BLOCKED}));
    ums_context_t c = 0;
    ASSERT_EQ(ums_completion_list_dequeue(list, UMS_NEVER, &c), 0);
}

TEST_F(yield_test, the_procedure_always_starts_at_the_same_depth) {
    completion_list list;
    // More rounds than ThreadSanitizer's own record of the calls could hold, if anything were left
    // behind.
    constexpr int rounds = under_tsan ? 50'000 : scaled(1'000'000, 3000);
    auto yields = [] {
        for (int i = 0; i < rounds / 2; ++i) ums_worker_yield(nullptr);
    };
    test_worker a{list, yields}, b{list, yields};
    std::set<const void*> depths;
    round_robin s{list, 2};
    struct {
        round_robin& s;
        std::set<const void*>& depths;
    } both{s, depths};
    schedule(list, [&both](ums_reason_t reason, std::uintptr_t payload, void*) {
        const void* here = __builtin_frame_address(0);
        if (both.depths.size() < 10) both.depths.insert(here);
        both.s.decide(reason, payload);
    });
    EXPECT_EQ(depths.size(), 1u);
    EXPECT_EQ(s.yields, rounds / 2 * 2);
}

TEST_F(yield_test, a_scheduler_returns_and_enters_again) {
    completion_list list;
    test_worker w{list, [] {
                      for (int i = 0; i < 3; ++i) ums_worker_yield(nullptr);
                  }};
    ums_context_t c = 0;
    ASSERT_EQ(ums_completion_list_dequeue(list, UMS_NEVER, &c), 0);
    for (int i = 0; i < 3; ++i) {
        int calls = 0;
        schedule(list, [&](ums_reason_t reason, std::uintptr_t payload, void*) {
            ++calls;
            if (reason == UMS_REASON_STARTUP) ums_worker_execute(c);
            EXPECT_EQ(payload, c);
        });
        EXPECT_EQ(calls, 2);
        EXPECT_EQ(ums_context_current(), 0u);
        EXPECT_EQ(ums_thread_kind(0), UMS_THREAD_PLAIN);
    }
    round_robin s{list, 1};
    s.ready.push_back(c);
    s.run();
}

TEST_F(yield_test, startup_brings_the_parameter) {
    completion_list list;
    static void* got = nullptr;
    ums_scheduler_options_t options = UMS_SCHEDULER_OPTIONS_INIT;
    options.list = list;
    options.parameter = &options;
    options.procedure = [](ums_reason_t reason, std::uintptr_t payload, void* parameter) {
        EXPECT_EQ(reason, UMS_REASON_STARTUP);
        EXPECT_EQ(payload, 0u);
        got = parameter;
    };
    EXPECT_EQ(ums_scheduler_enter(&options), 0);
    EXPECT_EQ(got, &options);
}

// --- What a worker has of its own ---

thread_local int own = 0;
thread_local std::vector<int> own_memory;

struct same_everywhere {
    const int id;
    const pthread_t self = pthread_self();
    const int tid = ums_thread_id();
    int* const address = &own;
    int* const errno_at = &errno;

    explicit same_everywhere(int n) : id{n} {
        own = n;
        errno = n;
        std::fesetround(n % 2 == 0 ? FE_UPWARD : FE_TONEAREST);
    }
    void check() const {
        EXPECT_EQ(errno, id);
        EXPECT_EQ(own, id);
        EXPECT_EQ(&own, address);
        EXPECT_EQ(&errno, errno_at);
        EXPECT_TRUE(pthread_equal(pthread_self(), self));
        EXPECT_EQ(ums_thread_id(), tid);
        EXPECT_EQ(std::fegetround(), id % 2 == 0 ? FE_UPWARD : FE_TONEAREST);
        errno = id;
    }
};

// A ready list that several schedulers share.
struct shared_ready {
    std::mutex lock;
    std::deque<ums_context_t> ready;
    int left;
};

void run_shared(completion_list& list, shared_ready& all) {
    schedule(list, [&](ums_reason_t reason, std::uintptr_t payload, void*) {
        ums_context_t next = reason == UMS_REASON_YIELD ? payload : 0;
        for (;;) {
            ums_context_t batch = 0;
            if (ums_completion_list_dequeue(list, 0, &batch) != 0) ADD_FAILURE();
            {
                const std::lock_guard hold{all.lock};
                if (next != 0) all.ready.push_back(next);
                for (next = 0; batch != 0; batch = ums_context_next(batch)) {
                    if (is_terminated(batch))
                        --all.left;
                    else
                        all.ready.push_back(batch);
                }
                if (!all.ready.empty()) {
                    next = all.ready.front();
                    all.ready.pop_front();
                }
                if (next == 0 && all.left == 0) return;
            }
            if (next == 0) {
                std::this_thread::yield();
                continue;
            }
            // Control comes back here only if that fails.
            const int failed = ums_worker_execute(next);
            if (failed != -EAGAIN) ADD_FAILURE() << failed;
        }
    });
}

TEST_F(yield_test, thread_locals_errno_and_identity_follow_a_worker_between_schedulers) {
    completion_list list;
    constexpr int n = 8;
    const int rounds = scaled(2000, 100);
    shared_ready all{{}, {}, n};
    std::atomic<int> running[n] = {}, met[2] = {};
    std::vector<std::unique_ptr<test_worker>> workers;
    static thread_local int scheduler_index = -1;
    for (int i = 0; i < n; ++i)
        workers.push_back(std::make_unique<test_worker>(list, [&, i] {
            EXPECT_EQ(scheduler_index, -1) << "a scheduler's thread_local in a worker";
            same_everywhere me{i + 1};
            own_memory.push_back(i);
            for (int round = 0; round < rounds; ++round) {
                EXPECT_EQ(running[i].fetch_add(1), 0) << "runs twice at once";
                me.check();
                running[i].fetch_sub(1);
                ums_worker_yield(nullptr);
                if (round % 64 == 0) {
                    ums_worker_blocking_enter();
                    me.check();
                    ums_worker_blocking_leave();
                }
            }
            EXPECT_EQ(own_memory, std::vector<int>{i});
        }));
    std::vector<std::thread> schedulers;
    for (int i = 0; i < 2; ++i)
        schedulers.emplace_back([&, i] {
            scheduler_index = i;
            run_shared(list, all);
            EXPECT_EQ(scheduler_index, i);
        });
    for (std::thread& s : schedulers) s.join();
    (void)met;
}

TEST_F(yield_test, what_a_worker_is_and_what_its_thread_says) {
    completion_list list;
    ums_context_t inside = 0;
    ums_worker_t handle = 0;
    int tid = 0;
    test_worker w{list, [&] {
                      inside = ums_context_current();
                      handle = ums_worker_current();
                      tid = ums_thread_id();
                      EXPECT_EQ(ums_thread_kind(0), UMS_THREAD_WORKER);
                      EXPECT_EQ(ums_thread_kind(tid), UMS_THREAD_WORKER);
                      EXPECT_GE(::sched_getcpu(), 0);
                      EXPECT_LT(::sched_getcpu(), 4096);
                  }};
    const int own_tid = ::gettid();
    EXPECT_EQ(ums_thread_kind(own_tid), UMS_THREAD_PLAIN);
    EXPECT_EQ(ums_thread_id(), own_tid);
    EXPECT_EQ(ums_thread_kind(ums_worker_tid(w.worker())), UMS_THREAD_WORKER);
    EXPECT_EQ(ums_worker_context(w.worker()), w.context());
    EXPECT_EQ(ums_worker_current(), 0u);
    ums_context_t scheduler = 0;
    round_robin s{list, 1};
    schedule(list, [&](ums_reason_t reason, std::uintptr_t payload, void*) {
        if (reason == UMS_REASON_STARTUP) {
            scheduler = ums_context_current();
            EXPECT_EQ(ums_thread_kind(0), UMS_THREAD_SCHEDULER);
            EXPECT_EQ(ums_thread_kind(own_tid), UMS_THREAD_SCHEDULER);
            void* const data = &s;
            EXPECT_EQ(ums_context_set(scheduler, UMS_INFORMATION_USER_CONTEXT, &data, sizeof data),
                      0);
        } else {
            void* data = nullptr;
            EXPECT_EQ(ums_context_current(), scheduler);
            EXPECT_EQ(ums_context_query(scheduler, UMS_INFORMATION_USER_CONTEXT, &data, sizeof data,
                                        nullptr),
                      0);
            EXPECT_EQ(data, &s);
        }
        s.decide(reason, payload);
    });
    EXPECT_EQ(inside, w.context());
    EXPECT_EQ(handle, w.worker());
    EXPECT_EQ(tid, ums_worker_tid(w.worker()));
    EXPECT_NE(scheduler, 0u);
    EXPECT_NE(scheduler, inside);
    EXPECT_EQ(ums_context_query(scheduler, UMS_INFORMATION_SUSPENDED, nullptr, 1, nullptr), -EBADF);
}

volatile std::sig_atomic_t handled_by = 0;

TEST_F(yield_test, a_signal_to_a_sleeping_home_waits_until_it_is_awake) {
    completion_list list;
    struct sigaction before, mine = {};
    mine.sa_handler = [](int) { handled_by = ums_thread_id(); };
    ASSERT_EQ(sigaction(SIGUSR1, &mine, &before), 0);
    handled_by = 0;
    bool at_home = false;
    pthread_t self = {};
    test_worker w{list, [&] {
                      self = pthread_self();
                      ums_worker_yield(nullptr);
                      EXPECT_EQ(handled_by, 0);
                      ums_worker_blocking_enter();
                      // ThreadSanitizer keeps a signal back until the next call that it knows.
                      ::usleep(0);
                      at_home = handled_by == ums_thread_id();
                      ums_worker_blocking_leave();
                  }};
    schedule(list, [&](ums_reason_t reason, std::uintptr_t payload, void*) {
        ums_context_t c = payload;
        if (reason == UMS_REASON_YIELD) {
            EXPECT_EQ(pthread_kill(self, SIGUSR1), 0);
        } else {
            if (ums_completion_list_dequeue(list, UMS_NEVER, &c) != 0) ADD_FAILURE();
            if (is_terminated(c)) return;
        }
        ums_worker_execute(c);
    });
    EXPECT_TRUE(at_home);
    sigaction(SIGUSR1, &before, nullptr);
}

TEST_F(yield_test, setuid_reaches_sleeping_homes) {
    completion_list list;
    test_worker w{list, [] { ums_worker_yield(nullptr); }};
    EXPECT_EQ(::setuid(::getuid()), 0);  // This waits for every kernel thread.
    round_robin s{list, 1};
    s.run();
}

TEST_F(yield_test, a_worker_changes_its_user_id_where_it_may_block) {
    completion_list list;
    test_worker w{list, [] {
                      ums_worker_blocking_enter();
                      EXPECT_EQ(::seteuid(::geteuid()), 0);  // This waits for every kernel thread.
                      ums_worker_blocking_leave();
                  }};
    round_robin s{list, 1};
    s.run();
}

// Keeps the thread that makes a worker from restoring its own signal mask before the worker is
// ready for that.
std::atomic<bool> is_far_enough;
pid_t maker = 0;
int masks_of_maker = 0;
long late_mask(const std::uint64_t* mask, std::uint64_t* old) noexcept {
    if (::gettid() == maker && ++masks_of_maker == 2)
        while (!is_far_enough) std::this_thread::yield();
    return ums::os::kernel_calls.signal_mask(mask, old);
}

TEST_F(yield_test, a_worker_that_is_faster_than_its_maker_knows_its_handle_and_keeps_its_mask) {
    completion_list list;
    is_far_enough = false;
    masks_of_maker = 0;
    maker = ::gettid();
    // Set while no other thread reads it: from here until all have ended.
    ums::os::system.signal_mask = &late_mask;
    std::thread runs{[&] {
        round_robin s{list, 1};
        s.run();
    }};
    ums_worker_options_t options = UMS_WORKER_OPTIONS_INIT;
    options.list = list;
    ums_worker_t w = 0, known = 0;
    must(ums_worker_create(
        &w, &options,
        [](void* handle) -> std::intptr_t {
            *static_cast<ums_worker_t*>(handle) = ums_worker_current();
            ums_worker_blocking_enter();
            sigset_t its;
            sigemptyset(&its);
            sigaddset(&its, SIGUSR2);
            EXPECT_EQ(pthread_sigmask(SIG_BLOCK, &its, nullptr), 0);
            ums_worker_blocking_leave();
            is_far_enough = true;
            return 0;
        },
        &known));
    sigset_t now;
    EXPECT_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &now), 0);
    EXPECT_EQ(sigismember(&now, SIGUSR2), 0);
    const ums_context_t c = ums_worker_context(w);
    EXPECT_EQ(ums_worker_join(w, nullptr), 0);
    runs.join();
    ums::os::system.signal_mask = ums::os::kernel_calls.signal_mask;
    EXPECT_EQ(known, w);
    EXPECT_EQ(ums_context_destroy(c), 0);
    sigdelset(&now, SIGUSR2);
    EXPECT_EQ(pthread_sigmask(SIG_SETMASK, &now, nullptr), 0);
}

TEST_F(yield_test, exceptions_stay_in_their_worker) {
    completion_list list;
    int caught = 0;
    auto thrower = [&caught] {
        for (int i = 0; i < 10; ++i) {
            try {
                throw i;
            } catch (int n) {
                ums_worker_yield(nullptr);
                caught += n == i;
                EXPECT_NE(std::current_exception(), nullptr);
            }
            EXPECT_EQ(std::current_exception(), nullptr);
        }
    };
    test_worker a{list, thrower}, b{list, thrower};
    round_robin s{list, 2};
    s.run();
    EXPECT_EQ(caught, 20);
}

TEST_F(yield_test, what_happened_is_counted) {
    completion_list list;
    ums_scheduling_stats_t before = UMS_SCHEDULING_STATS_INIT, after = UMS_SCHEDULING_STATS_INIT;
    ASSERT_EQ(ums_scheduling_get_stats(&before), 0);
    ums_scheduling_measure(true);
    test_worker w{list, [] {
                      for (int i = 0; i < 5; ++i) ums_worker_yield(nullptr);
                      ums_worker_blocking_enter();
                      ums_worker_blocking_leave();
                  }};
    round_robin s{list, 1};
    schedule(list, [&](ums_reason_t reason, std::uintptr_t payload, void*) {
        ums_context_stats_t mine = UMS_CONTEXT_STATS_INIT;
        EXPECT_EQ(ums_context_get_stats(ums_context_current(), &mine), 0);
        EXPECT_TRUE(mine.is_scheduler);
        EXPECT_FALSE(mine.is_running);
        EXPECT_EQ(mine.tid, ::gettid());
        EXPECT_EQ(mine.pid, ::getpid());
        EXPECT_EQ(mine.list, list);
        EXPECT_EQ(mine.yields, static_cast<std::uint64_t>(s.yields + (reason == UMS_REASON_YIELD)));
        s.decide(reason, payload);
    });
    ums_scheduling_measure(false);
    ums_context_stats_t its = UMS_CONTEXT_STATS_INIT;
    ASSERT_EQ(ums_context_get_stats(w.context(), &its), 0);
    EXPECT_EQ(its.switches, 7u);
    EXPECT_EQ(its.yields, 5u);
    EXPECT_EQ(its.blocked_in_syscall, 2u);
    EXPECT_EQ(its.state, UMS_WORKER_TERMINATED);
    EXPECT_GT(its.running_ns, 0u);
    ums_context_t all[4] = {};
    EXPECT_EQ(ums_context_list(all, 4), 1u);
    EXPECT_EQ(all[0], w.context());
    ASSERT_EQ(ums_scheduling_get_stats(&after), 0);
    EXPECT_EQ(after.switches - before.switches, 7u);
    EXPECT_EQ(after.yields - before.yields, 5u);
    EXPECT_EQ(after.blocked_in_syscall - before.blocked_in_syscall, 2u);
    EXPECT_EQ(after.workers_created - before.workers_created, 1u);
    EXPECT_EQ(after.workers_ended - before.workers_ended, 1u);
    EXPECT_EQ(after.schedulers, 0u);
}

}  // namespace
