// SPDX-License-Identifier: MIT
// variants: clang
//
// Workers that block in the kernel by calls that were not announced, with each detector. Without
// detection these tests would hang: the scheduler that the worker has blocked is the one that opens
// the gate.

#include <atomic>
#include <cerrno>
#include <cfenv>
#include <csignal>
#include <cstring>
#include <ctime>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <sys/syscall.h>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "carry/detect/detector.hpp"
#include "support/conservation.hpp"
#include "support/gate.hpp"
#include "support/round_robin.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"

namespace {

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UNDER_ASAN
#endif
#endif
#if defined(UNDER_ASAN)
constexpr bool are_stopped = false;
#else
constexpr bool are_stopped = !under_tsan;
#endif

constexpr const char* not_stopped = "workers are not stopped by a signal under sanitizers";

class unseen_test : public ::testing::TestWithParam<const char*> {
protected:
    void SetUp() override {
        const char* before = std::getenv("UMS_BLOCK");
        before_ = before != nullptr ? before : "";
        ::setenv("UMS_BLOCK", GetParam(), 1);
    }
    void TearDown() override {
        if (before_.empty())
            ::unsetenv("UMS_BLOCK");
        else
            ::setenv("UMS_BLOCK", before_.c_str(), 1);
    }

    static ums_context_t one(ums_completion_list_t list, std::int64_t deadline = UMS_NEVER) {
        ums_context_t c = 0;
        EXPECT_EQ(ums_completion_list_dequeue(list, deadline, &c), 0);
        return c;
    }
    static void run(ums_context_t c) {
        int failed = 0;
        while ((failed = ums_worker_execute(c)) == -EAGAIN) {
        }
        ADD_FAILURE() << "execute returned " << failed;
    }

private:
    const conservation nothing_left_;
    std::string before_;
};

TEST_P(unseen_test, blocking_is_told_whatever_the_worker_blocks_in_and_it_comes_back) {
    for (const gate_kind& kind : gate_kinds()) {
        SCOPED_TRACE(kind.name);
        completion_list list;
        const auto closed = kind.make();
        std::atomic<bool> passed = false;
        test_worker w{list, [&] {
                          passed = closed->pass();
                          EXPECT_TRUE(passed) << std::strerror(errno);
                          EXPECT_EQ(ums_worker_yield(&list), 0);
                      }};
        int calls = 0;
        schedule(list, [&](ums_reason_t reason, std::uintptr_t payload, void* parameter) {
            switch (++calls) {
                case 1:
                    run(one(list));
                    break;
                case 2:
                    EXPECT_EQ(reason, UMS_REASON_BLOCKED);
                    EXPECT_EQ(payload, kind.name == "page fault" ? 0u : 1u);
                    EXPECT_EQ(parameter, nullptr);
                    EXPECT_FALSE(passed);
                    EXPECT_EQ(one(list, 0), 0u);
                    closed->open();
                    run(one(list));
                    break;
                case 3:
                    EXPECT_EQ(reason, UMS_REASON_YIELD);
                    EXPECT_EQ(payload, w.context());
                    EXPECT_EQ(parameter, &list);
                    EXPECT_TRUE(passed);
                    run(payload);
                    break;
                case 4:
                    EXPECT_TRUE(is_terminated(one(list)));
                    break;
                default:
                    ADD_FAILURE();
            }
        });
        EXPECT_EQ(calls, 4);
    }
}

TEST_P(unseen_test, a_raw_sleep_is_told_and_not_cut_short) {
    completion_list list;
    std::atomic<bool> told = false;
    test_worker w{list, [&] {
                      // The machine may be too busy for the detector to see one of them.
                      while (!told) {
                          timespec time{0, 10'000'000};
                          const std::int64_t begin = ums_now();
                          EXPECT_EQ(::syscall(SYS_nanosleep, &time, nullptr), 0);
                          EXPECT_GE(ums_now() - begin, 10'000'000);
                      }
                  }};
    round_robin s{list, 1};
    schedule(list, [&](ums_reason_t reason, std::uintptr_t payload, void*) {
        if (reason == UMS_REASON_BLOCKED) told = true;
        s.decide(reason, payload);
    });
    EXPECT_GE(s.blocked, 2);
}

// Page faults are another matter: a fault that waits for a mapping that another thread makes does
// block.
TEST_P(unseen_test, calls_that_do_not_block_are_not_told) {
    ums_scheduling_stats_t before = UMS_SCHEDULING_STATS_INIT, after = UMS_SCHEDULING_STATS_INIT;
    must(ums_scheduling_get_stats(&before));
    completion_list list;
    pipe_gate open;
    test_worker w{list, [&] {
                      for (int i = 0; i < 1000; ++i) {
                          open.open();
                          EXPECT_TRUE(open.pass());
                      }
                  }};
    round_robin s{list, 1};
    s.run();
    must(ums_scheduling_get_stats(&after));
    EXPECT_EQ(after.blocked_in_syscall - before.blocked_in_syscall, 1u);  // The end of the worker.
}

TEST_P(unseen_test, a_worker_that_computes_on_after_its_call_is_stopped_until_it_is_executed) {
    if (!are_stopped) GTEST_SKIP() << not_stopped;
    for (int round = 0; round < 20; ++round) {
        completion_list list;
        raw_read_gate gate;
        std::atomic<bool> go = false;
        test_worker w{list, [&] {
                          static thread_local int mine;
                          mine = round;
                          std::fesetround(FE_UPWARD);
                          const auto self = pthread_self();
                          sigset_t before, after;
                          pthread_sigmask(SIG_SETMASK, nullptr, &before);
                          EXPECT_TRUE(gate.pass());
                          errno = 77;
                          while (!go.load(std::memory_order_relaxed)) {
                          }
                          EXPECT_EQ(errno, 77);
                          EXPECT_EQ(mine, round);
                          EXPECT_EQ(std::fegetround(), FE_UPWARD);
                          EXPECT_EQ(pthread_self(), self);
                          pthread_sigmask(SIG_SETMASK, nullptr, &after);
                          EXPECT_EQ(std::memcmp(&before, &after, sizeof(long)), 0);
                      }};
        int calls = 0;
        schedule(list, [&](ums_reason_t, std::uintptr_t, void*) {
            if (++calls == 1) run(one(list));
            if (calls != 2) return;
            gate.open();
            const ums_context_t c = one(list);  // It is stopped, or this would never return.
            EXPECT_EQ(c, w.context());
            go = true;
            run(c);
        });
        EXPECT_GE(calls, 3);
        EXPECT_TRUE(is_terminated(one(list)));
    }
}

TEST_P(unseen_test, the_scheduler_returns_to_its_own_kernel_thread) {
    completion_list list;
    raw_read_gate gate;
    const pid_t tid = ::gettid();
    static thread_local int mine;
    mine = 5;
    test_worker w{list, [&] {
                      EXPECT_TRUE(gate.pass());
                      for (int i = 0; i < 3; ++i) ums_worker_yield(nullptr);
                  }};
    int calls = 0;
    schedule(list, [&](ums_reason_t reason, std::uintptr_t payload, void*) {
        EXPECT_EQ(mine, 5);
        EXPECT_EQ(ums_thread_id(), tid);
        EXPECT_EQ(ums_thread_kind(0), UMS_THREAD_SCHEDULER);
        if (++calls == 1) run(one(list));
        if (calls == 2) {
            EXPECT_NE(::gettid(), tid);
            gate.open();
            run(one(list));
        }
        if (reason == UMS_REASON_YIELD) {
            EXPECT_EQ(::gettid(), tid);
            run(payload);
        }
    });
    EXPECT_EQ(::gettid(), tid);
    EXPECT_EQ(one(list), w.context());
}

TEST_P(unseen_test, workers_that_wait_for_each_other_in_the_kernel_go_on) {
    completion_list list;
    constexpr std::size_t n = 20;
    std::vector<raw_read_gate> gates(n + 1);
    std::vector<std::unique_ptr<test_worker>> workers;
    for (std::size_t i = 0; i < n; ++i)
        workers.push_back(std::make_unique<test_worker>(list, [&, i] {
            EXPECT_TRUE(gates[i].pass()) << std::strerror(errno);
            gates[i + 1].open();
        }));
    // The last worker that runs lets the first continue.
    workers.push_back(std::make_unique<test_worker>(list, [&] { gates[0].open(); }));
    round_robin s{list, static_cast<int>(n) + 1};
    s.run();
    EXPECT_GE(s.blocked, static_cast<int>(n) + 1);
}

TEST_P(unseen_test, a_stray_can_be_terminated_and_suspended) {
    completion_list list;
    for (const bool suspends : {false, true}) {
        raw_read_gate gate;
        bool went_on = false;
        test_worker w{list, [&] {
                          EXPECT_TRUE(gate.pass());
                          ums_worker_yield(nullptr);
                          went_on = true;
                      }};
        int calls = 0;
        schedule(list, [&](ums_reason_t reason, std::uintptr_t payload, void*) {
            if (++calls == 1) run(one(list));
            if (calls == 2) {
                if (!suspends) {
                    EXPECT_EQ(ums_worker_terminate(w.worker(), 4), 0);
                    gate.open();
                    EXPECT_EQ(one(list), w.context());
                    EXPECT_TRUE(is_terminated(w.context()));
                    return;
                }
                EXPECT_EQ(ums_worker_suspend(w.worker(), nullptr), 0);
                gate.open();
                const int failed = ums_worker_execute(w.context());
                EXPECT_TRUE(failed == -EBUSY || failed == -EACCES) << failed;
                EXPECT_EQ(ums_worker_resume(w.worker(), nullptr), 0);
                run(one(list));
            }
            if (reason == UMS_REASON_YIELD) run(payload);
        });
        EXPECT_EQ(went_on, suspends);
        if (suspends) {
            EXPECT_EQ(one(list), w.context());
        }
        EXPECT_EQ(w.join(), suspends ? 0 : 4);
    }
}

TEST_P(unseen_test, nothing_is_told_of_blocking_in_a_critical_region) {
    completion_list list;
    test_worker w{list, [] {
                      ums_critical_enter();
                      timespec time{0, 30'000'000};
                      EXPECT_EQ(::syscall(SYS_nanosleep, &time, nullptr), 0);
                      ums_critical_leave();
                  }};
    round_robin s{list, 1};
    s.run();
    EXPECT_EQ(s.blocked, 1);
}

TEST_P(unseen_test, it_is_counted) {
    ums_scheduling_stats_t before = UMS_SCHEDULING_STATS_INIT, after = UMS_SCHEDULING_STATS_INIT;
    must(ums_scheduling_get_stats(&before));
    completion_list list;
    raw_read_gate gate;
    test_worker w{list, [&] { EXPECT_TRUE(gate.pass()); }};
    int calls = 0;
    schedule(list, [&](ums_reason_t, std::uintptr_t, void*) {
        if (++calls == 1) run(one(list));
        if (calls != 2) return;
        gate.open();
        run(one(list));
    });
    EXPECT_EQ(one(list), w.context());
    must(ums_scheduling_get_stats(&after));
    // Plus the end of the worker.
    EXPECT_EQ(after.blocked_in_syscall, before.blocked_in_syscall + 2);
}

// Raw blocking, known blocking, yields, the heap and streams, on two schedulers that share a list.
TEST_P(unseen_test, a_mixture_loses_nobody) {
    const std::uint64_t seed = test_seed();
    const int n = scaled(40, 10), rounds = scaled(30, 10);
    completion_list list;
    std::vector<std::unique_ptr<test_worker>> workers;
    std::atomic<int> left = n;
    std::FILE* sink = std::fopen("/dev/null", "w");
    for (int i = 0; i < n; ++i)
        workers.push_back(std::make_unique<test_worker>(list, [&, i] {
            std::mt19937_64 rng{seed + static_cast<unsigned>(i)};
            static thread_local int mine;
            mine = i;
            for (int round = 0; round < rounds; ++round) {
                timespec time{0, 100'000};
                switch (rng() % 5) {
                    case 0:
                        EXPECT_EQ(::syscall(SYS_nanosleep, &time, nullptr), 0);
                        break;
                    case 1:
                        ums_worker_yield(nullptr);
                        break;
                    case 2:
                        ums_worker_blocking_enter();
                        ::syscall(SYS_nanosleep, &time, nullptr);
                        ums_worker_blocking_leave();
                        break;
                    case 3: {
                        const std::vector<char> some(rng() % 100'000, 'x');
                        std::fprintf(sink, "%zu\n", some.size());
                        break;
                    }
                    default:
                        for (volatile int k = 0; k < 20'000;) k = k + 1;
                }
                EXPECT_EQ(mine, i);
            }
        }));
    struct shared {
        std::mutex lock;
        std::vector<ums_context_t> ready;
    } all;
    const auto work = [&](unsigned index) {
        std::mt19937_64 rng{seed + index};
        const void* depth = nullptr;
        struct {
            std::mt19937_64& rng;
            const void*& depth;
            shared& all;
            std::atomic<int>& left;
            ums_completion_list_t list;
        } s{rng, depth, all, left, list};
        schedule(list, [&s](ums_reason_t reason, std::uintptr_t payload, void*) {
            if (s.depth == nullptr) s.depth = __builtin_frame_address(0);
            EXPECT_EQ(s.depth, __builtin_frame_address(0));
            ums_context_t next = reason == UMS_REASON_YIELD ? payload : 0;
            while (s.left.load() > 0) {
                {
                    const std::lock_guard hold{s.all.lock};
                    if (next != 0) s.all.ready.push_back(next);
                    next = 0;
                    if (!s.all.ready.empty()) {
                        std::swap(s.all.ready[s.rng() % s.all.ready.size()], s.all.ready.back());
                        next = s.all.ready.back();
                        s.all.ready.pop_back();
                    }
                }
                if (next != 0) run(next);
                ums_context_t c = 0;
                const int failed = ums_completion_list_dequeue(s.list, ums_now() + 1'000'000, &c);
                EXPECT_TRUE(failed == 0 || failed == -ETIMEDOUT);
                for (; c != 0; c = ums_context_next(c)) {
                    if (is_terminated(c)) {
                        --s.left;
                        continue;
                    }
                    const std::lock_guard hold{s.all.lock};
                    s.all.ready.push_back(c);
                }
            }
        });
    };
    std::thread other{work, 1};
    work(0);
    other.join();
    for (auto& w : workers) w->join();
    std::fclose(sink);
}

INSTANTIATE_TEST_SUITE_P(each_detector, unseen_test, ::testing::Values("monitor"),
                         [](const auto& chosen) { return std::string{chosen.param}; });

}  // namespace
