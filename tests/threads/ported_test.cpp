// SPDX-License-Identifier: MIT
//
// Programs in which only std::thread was replaced, by ums::fiber: they wait on the standard's and
// the C library's own types, which block the kernel thread. With default options each ends on one
// processor and on two.
//
// Each program runs in a child process, so that one that hangs is named and harms no other.

#include <array>
#include <atomic>
#include <barrier>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <latch>
#include <mutex>
#include <ostream>
#include <pthread.h>
#include <semaphore>
#include <shared_mutex>
#include <stdexcept>
#include <stdlib.h>
#include <string>
#include <sys/file.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "support/child.hpp"
#include "support/scale.hpp"
#include "ums/fiber.hpp"
#include "ums/run.hpp"

namespace {

// Starts that many with numbers from zero on, and joins them.
template <class F>
void run_fibers(int how_many, F body) {
    std::vector<ums::fiber> all;
    for (int i = 0; i < how_many; ++i) all.emplace_back([&body, i] { body(i); });
    for (ums::fiber& one : all) one.join();
}

void compute(std::chrono::milliseconds how_long) {
    const auto until = std::chrono::steady_clock::now() + how_long;
    while (std::chrono::steady_clock::now() < until) {
    }
}

void atomic_wait() {
    std::atomic<int> ended = 0;
    run_fibers(8, [&](int i) {
        for (int now = ended; now != 7 - i; now = ended) ended.wait(now);
        ++ended;
        ended.notify_all();
    });
}

void condition_variable() {
    std::mutex lock;
    std::condition_variable changed;
    int turn = 0;
    run_fibers(6, [&](int i) {
        for (int round = 0; round < 20; ++round) {
            std::unique_lock hold{lock};
            changed.wait(hold, [&] { return turn % 6 == i; });
            ++turn;
            changed.notify_all();
        }
    });
    EXPECT_EQ(turn, 120);
}

void latch_barrier_and_semaphore() {
    std::latch all_here{6};
    int phases = 0;
    std::barrier phase{6, [&phases]() noexcept { ++phases; }};
    std::counting_semaphore<> two{2};
    std::atomic<int> inside = 0;
    run_fibers(6, [&](int) {
        all_here.arrive_and_wait();
        for (int i = 0; i < 20; ++i) {
            phase.arrive_and_wait();
            two.acquire();
            EXPECT_LE(++inside, 2);
            usleep(50);
            --inside;
            two.release();
        }
    });
    EXPECT_EQ(phases, 20);
}

void call_once_that_blocks_and_computes() {
    std::once_flag once;
    std::atomic<int> calls = 0;
    run_fibers(8, [&](int) {
        std::call_once(once, [&] {
            usleep(3000);
            compute(std::chrono::milliseconds{15});
            ++calls;
        });
        EXPECT_EQ(calls, 1);
    });
}

// Its initialisation joins a fiber, so it may end on another kernel thread.
void static_local() {
    run_fibers(6, [](int) {
        static const int value = [] {
            int seven = 0;
            ums::fiber setter{[&seven] {
                usleep(2000);
                seven = 7;
            }};
            setter.join();
            return seven;
        }();
        EXPECT_EQ(value, 7);
    });
}

void shared_mutex() {
    std::shared_mutex lock;
    int value = 0;
    run_fibers(6, [&](int i) {
        for (int k = 0; k < 20; ++k) {
            if (i < 2) {
                const std::unique_lock hold{lock};
                ++value;
                usleep(100);
            } else {
                const std::shared_lock hold{lock};
                const int before = value;
                usleep(100);
                EXPECT_EQ(value, before);
            }
        }
    });
    EXPECT_EQ(value, 40);
}

void async_and_promise() {
    run_fibers(6, [](int i) {
        auto other = std::async(std::launch::async, [i] {
            usleep(1000);
            return i;
        });
        std::promise<int> promise;
        auto promised = promise.get_future();
        ums::fiber keeper{[&promise] {
            usleep(500);
            promise.set_exception(std::make_exception_ptr(std::out_of_range{"far"}));
        }};
        EXPECT_EQ(other.get(), i);
        EXPECT_THROW(promised.get(), std::out_of_range);
        keeper.join();
    });
}

// A mutex of this kind compares the kernel thread's id.
void error_checking_mutex() {
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_t lock;
    pthread_mutex_init(&lock, &kind);
    int value = 0;
    run_fibers(5, [&](int) {
        for (int i = 0; i < 5; ++i) {
            EXPECT_EQ(pthread_mutex_lock(&lock), 0);
            usleep(500);
            compute(std::chrono::milliseconds{2});
            ++value;
            EXPECT_EQ(pthread_mutex_unlock(&lock), 0);
        }
    });
    EXPECT_EQ(value, 25);
    pthread_mutex_destroy(&lock);
    pthread_mutexattr_destroy(&kind);
}

void barrier_of_the_c_library() {
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, nullptr, 5);
    std::atomic<int> last_ones = 0;
    run_fibers(5, [&](int) {
        for (int i = 0; i < 20; ++i)
            if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) ++last_ones;
    });
    EXPECT_EQ(last_ones, 20);
    pthread_barrier_destroy(&barrier);
}

void child_processes() {
    run_fibers(4, [](int i) {
        const std::string command = "exit " + std::to_string(i);
        const int ended = std::system(command.c_str());
        EXPECT_EQ(WEXITSTATUS(ended), i);
        const pid_t child = fork();
        if (child == 0) {
            usleep(1000);
            _exit(i);
        }
        int status = 0;
        EXPECT_EQ(waitpid(child, &status, 0), child);
        EXPECT_EQ(WEXITSTATUS(status), i);
    });
}

void file_lock() {
    std::array<char, 32> name{"/tmp/ums_ported_XXXXXX"};
    const int made = mkstemp(name.data());
    int value = 0;
    run_fibers(4, [&](int) {
        std::FILE* const own = std::fopen(name.data(), "r+");
        for (int i = 0; i < 5; ++i) {
            EXPECT_EQ(flock(fileno(own), LOCK_EX), 0);
            const int before = value;
            usleep(500);
            value = before + 1;
            flock(fileno(own), LOCK_UN);
        }
        std::fclose(own);
    });
    EXPECT_EQ(value, 20);
    unlink(name.data());
    close(made);
}

// What belongs to the kernel thread stays while a fiber calls nothing of libums.
void thread_locals_and_exceptions() {
    static thread_local int mine = -1;
    run_fibers(6, [](int i) {
        for (int k = 0; k < 5; ++k) {
            try {
                throw i;
            } catch (int caught) {
                mine = errno = i + 1;
                usleep(300);
                compute(std::chrono::milliseconds{3});
                EXPECT_EQ(errno, i + 1);
                EXPECT_EQ(mine, i + 1);
                EXPECT_EQ(caught, i);
            }
        }
        EXPECT_EQ(std::uncaught_exceptions(), 0);
    });
}

void lock_of_standard_output() {
    run_fibers(4, [](int) {
        for (int i = 0; i < 3; ++i) {
            flockfile(stdout);
            std::fputs("a", stdout);
            usleep(300);
            compute(std::chrono::milliseconds{4});
            std::fputs("b\n", stdout);
            funlockfile(stdout);
        }
    });
}

template <class Step>
void loop_until_the_next_has_run(Step step) {
    std::atomic<int> ended = 0;
    run_fibers(6, [&](int i) {
        while (ended != 5 - i) step();
        ++ended;
    });
}

struct program {
    const char* name;
    void (*run)();
    friend std::ostream& operator<<(std::ostream& out, const program& one) {
        return out << one.name;
    }
};

const program programs[] = {
    {"atomic_wait", &atomic_wait},
    {"condition_variable", &condition_variable},
    {"latch_barrier_and_semaphore", &latch_barrier_and_semaphore},
    {"call_once_that_blocks_and_computes", &call_once_that_blocks_and_computes},
    {"static_local", &static_local},
    {"shared_mutex", &shared_mutex},
    {"async_and_promise", &async_and_promise},
    {"error_checking_mutex", &error_checking_mutex},
    {"barrier_of_the_c_library", &barrier_of_the_c_library},
    {"child_processes", &child_processes},
    {"file_lock", &file_lock},
    {"thread_locals_and_exceptions", &thread_locals_and_exceptions},
    {"lock_of_standard_output", &lock_of_standard_output},
    {"loop_that_yields", [] { loop_until_the_next_has_run([] { std::this_thread::yield(); }); }},
    {"loop_that_sleeps", [] { loop_until_the_next_has_run([] { usleep(1); }); }},
    {"loop_that_allocates",
     [] {
         loop_until_the_next_has_run([] {
             void* volatile at = std::malloc(100);
             std::free(at);
         });
     }},
};

const child_program ported{"ported", [](const child_arguments& arguments) {
                               for (const program& one : programs)
                                   if (arguments.at(0) == one.name) ums::run(one.run);
                               const auto& all = *::testing::UnitTest::GetInstance();
                               return all.ad_hoc_test_result().Failed() ? 1 : 0;
                           }};

class ported_program : public ::testing::TestWithParam<program> {
protected:
    static void ends_on(const char* processors) {
        if (never_stops) GTEST_SKIP() << "fibers are not stopped by a signal under this sanitizer";
        const child_end end = run_child("ported", {GetParam().name},
                                        {{"UMS_PROCESSORS", processors}}, std::chrono::seconds{60});
        EXPECT_EQ(end.code, 0) << GetParam().name << ": " << end;
        EXPECT_EQ(end.err, "");
    }
};

TEST_P(ported_program, ends_on_one_processor) { ends_on("1"); }
TEST_P(ported_program, ends_on_two_processors) { ends_on("2"); }

INSTANTIATE_TEST_SUITE_P(programs, ported_program, ::testing::ValuesIn(programs),
                         [](const auto& of) { return std::string{of.param.name}; });

}  // namespace
