// SPDX-License-Identifier: MIT
// variants: clang
//
// Many workers on several schedulers that share lists, in random order; and what they share with
// the schedulers: the heap.
//
// TEST_ROUNDS=n repeats the ten thousand that often; TEST_SECONDS=n makes the test of the heap and
// the loader take that long.

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/conservation.hpp"
#include "support/round_robin.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"

namespace {

class crowd_test : public conserving_test {};

// What the schedulers share: two lists, the ready workers, and how many have yet to end. None of it
// is held while a worker runs.
struct crowd {
    completion_list lists[2];
    std::mutex lock;
    std::condition_variable changed;
    std::vector<ums_context_t> ready;
    int left;

    explicit crowd(int n) : left{n} {
        for (const completion_list& l : lists) must(ums_completion_list_set_notify(l, &wake, this));
    }
    static void wake(void* self) {
        auto& c = *static_cast<crowd*>(self);
        const std::lock_guard hold{c.lock};
        c.changed.notify_all();
    }
    void take_all() {  // Requires: the lock.
        for (const completion_list& l : lists) {
            ums_context_t c = 0;
            must(ums_completion_list_dequeue(l, 0, &c));
            for (; c != 0; c = ums_context_next(c)) {
                if (is_terminated(c))
                    --left;
                else
                    ready.push_back(c);
            }
        }
    }
    // Returns any of the ready contexts; 0: all have ended.
    ums_context_t next(ums_context_t yielded, std::mt19937_64& rng) {
        std::unique_lock hold{lock};
        if (yielded != 0) ready.push_back(yielded);
        for (;;) {
            take_all();
            if (!ready.empty()) {
                std::swap(ready[rng() % ready.size()], ready.back());
                const ums_context_t c = ready.back();
                ready.pop_back();
                if (!ready.empty()) changed.notify_one();
                return c;
            }
            if (left == 0) {
                changed.notify_all();
                return 0;
            }
            changed.wait(hold);
        }
    }
};

using step = std::function<void(std::uint64_t)>;

void run_scheduler(crowd& all, int index, std::uint64_t seed, const step& before_each = {}) {
    std::mt19937_64 rng{seed + static_cast<unsigned>(index)};
    const void* depth = nullptr;
    struct {
        crowd& all;
        std::mt19937_64& rng;
        const void*& depth;
        const step& before_each;
    } s{all, rng, depth, before_each};
    schedule(all.lists[index % 2], [&s](ums_reason_t reason, std::uintptr_t payload, void*) {
        if (s.depth == nullptr) s.depth = __builtin_frame_address(0);
        if (s.depth != __builtin_frame_address(0)) ADD_FAILURE() << "a deeper stack";
        if (s.before_each) s.before_each(s.rng());
        ums_context_t c = s.all.next(reason == UMS_REASON_YIELD ? payload : 0, s.rng);
        while (c != 0) {
            const int failed = ums_worker_execute(c);
            if (failed != -EAGAIN) {
                ADD_FAILURE() << "execute returned " << failed;
                return;
            }
        }
    });
}

long knob(const char* name) {
    const char* text = std::getenv(name);
    return text != nullptr ? std::strtol(text, nullptr, 10) : 0;
}

void run_crowd(int n, int schedulers, const std::function<void(int)>& work,
               const step& before_each = {}) {
    const std::uint64_t seed = test_seed();
    crowd all{n};
    // All of them exist at the same time.
    std::vector<std::unique_ptr<test_worker>> workers;
    for (int i = 0; i < n; ++i)
        workers.push_back(std::make_unique<test_worker>(all.lists[i % 2], [&work, i] { work(i); }));
    std::vector<std::thread> threads;
    for (int i = 0; i < schedulers; ++i)
        threads.emplace_back([&, i] { run_scheduler(all, i, seed, before_each); });
    for (auto& w : workers) w->join();
    for (std::thread& t : threads) t.join();
    for (const completion_list& l : all.lists)
        EXPECT_EQ(ums_completion_list_set_notify(l, nullptr, nullptr), 0);
}

TEST_F(crowd_test, ten_thousand_workers_run_block_and_end_on_four_schedulers) {
    const long rounds = std::max(1L, knob("TEST_ROUNDS"));
    const int n = rounds > 1 ? 10'000 : scaled(10'000, 300);
    std::vector<std::atomic<int>> runs(static_cast<std::size_t>(n));
    const auto work = [&](int i) {
        thread_local int mine = 0;
        std::atomic<int>& in = runs[static_cast<std::size_t>(i)];
        for (int round = 0; round < 3; ++round) {
            EXPECT_EQ(in.fetch_add(1), 0) << "runs twice at once";
            ++mine;
            in.fetch_sub(1);
            ums_worker_yield(nullptr);
            if (i % 8 == round) {
                ums_worker_blocking_enter();
                std::this_thread::yield();
                ums_worker_blocking_leave();
            }
            if (i % 64 == round) {
                const timespec moment{0, 20'000};
                EXPECT_EQ(::syscall(SYS_nanosleep, &moment, nullptr), 0);
            }
        }
        EXPECT_EQ(mine, 3);
    };
    std::size_t heap = 0;
    for (long round = 0; round < rounds; ++round) {
        const conservation nothing_left;
        run_crowd(n, 4, work);
        if (rounds == 1) return;
        // After the first round the tables of handles have their final size.
        const std::size_t now = ::mallinfo2().uordblks;
        if (round == 0) heap = now;
        EXPECT_LE(now, heap + 100'000) << "the heap grows";
        if (HasFailure()) return;
    }
    ums_scheduling_stats_t sum = UMS_SCHEDULING_STATS_INIT;
    must(ums_scheduling_get_stats(&sum));
    std::printf(
        "%ld rounds of %d workers: %llu made, %llu ended, %llu executions, %llu yields, %llu "
        "blocked "
        "in system calls, %llu in faults, %llu schedulers left\n",
        rounds, n, static_cast<unsigned long long>(sum.workers_created),
        static_cast<unsigned long long>(sum.workers_ended),
        static_cast<unsigned long long>(sum.switches), static_cast<unsigned long long>(sum.yields),
        static_cast<unsigned long long>(sum.blocked_in_syscall),
        static_cast<unsigned long long>(sum.blocked_in_fault),
        static_cast<unsigned long long>(sum.schedulers));
}

TEST_F(crowd_test, schedulers_and_workers_allocate_print_and_load_libraries_at_once) {
    std::FILE* sink = std::fopen("/dev/null", "w");
    ASSERT_NE(sink, nullptr);
    using clock = std::chrono::steady_clock;
    const auto end = clock::now() + std::chrono::seconds{knob("TEST_SECONDS")};
    std::atomic<std::uint64_t> laps = 0, decisions = 0;
    const int rounds = scaled(200, 30);
    const auto work = [&](int i) {
        for (int round = 0; round < rounds || clock::now() < end; ++round) {
            ++laps;
            std::vector<std::unique_ptr<char[]>> some;
            for (int k = 0; k < 10; ++k)
                some.push_back(std::make_unique<char[]>(16u << (k + i % 4)));
            std::fprintf(sink, "worker %d round %d\n", i, round);
            ums_worker_yield(nullptr);
            if (round % 16 == 0) {
                void* library = ::dlopen("libm.so.6", RTLD_NOW);
                EXPECT_NE(library, nullptr);
                ::dlclose(library);
            }
        }
    };
    const auto decide = [&](std::uint64_t random) {
        ++decisions;
        const std::vector<char> some(random % 50'000);
        std::fprintf(sink, "decision %zu\n", some.size());
        if (random % 32 != 0) return;
        void* library = ::dlopen("libm.so.6", RTLD_NOW);
        EXPECT_NE(library, nullptr);
        ::dlclose(library);
    };
    run_crowd(scaled(100, 20), 3, work, decide);
    std::fclose(sink);
    std::printf("%llu laps of workers, %llu decisions of schedulers\n",
                static_cast<unsigned long long>(laps), static_cast<unsigned long long>(decisions));
}

TEST_F(crowd_test, suspensions_and_resumes_from_outside_lose_no_worker) {
    const std::uint64_t seed = test_seed();
    const int n = scaled(64, 16);
    crowd all{n};
    std::vector<std::thread> threads;
    std::vector<std::unique_ptr<test_worker>> workers;
    std::atomic<int> ended = 0;
    for (int i = 0; i < n; ++i)
        workers.push_back(std::make_unique<test_worker>(all.lists[i % 2], [&] {
            for (int round = 0; round < 20; ++round) {
                ums_worker_blocking_enter();
                std::this_thread::yield();
                ums_worker_blocking_leave();
                if (round % 4 == 0) ums_worker_suspend(ums_worker_current(), nullptr);
            }
            ++ended;
        }));
    // Resumes whatever is suspended, and suspends some for a moment.
    std::thread meddler{[&] {
        std::mt19937_64 rng{seed};
        while (ended.load() < n) {
            test_worker& w = *workers[rng() % workers.size()];
            // Leaves out owned workers: a resume does not queue those, and this test's schedulers
            // do not ask again.
            ums_worker_resume(w.worker(), nullptr);
            std::this_thread::yield();
        }
    }};
    for (int i = 0; i < 2; ++i) threads.emplace_back([&, i] { run_scheduler(all, i, seed); });
    meddler.join();
    for (auto& w : workers) w->join();
    for (std::thread& t : threads) t.join();
    for (const completion_list& l : all.lists)
        EXPECT_EQ(ums_completion_list_set_notify(l, nullptr, nullptr), 0);
    EXPECT_EQ(ended.load(), n);
}

}  // namespace
