// SPDX-License-Identifier: MIT
//
// A stop never deadlocks a program that would not deadlock with kernel threads. A fiber that is
// stopped may hold a lock on which all others spin, so that nothing ever switches; or it may hold
// the lock of an allocator that libums needs too.
//
// Each program runs in a child process: on kernel threads to show that it is right itself, then on
// fibers with one processor and default options.

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <ostream>
#include <pthread.h>
#include <sched.h>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "support/child.hpp"
#include "support/conservation.hpp"
#include "support/scale.hpp"
#include "ums/fiber.hpp"
#include "ums/run.hpp"

namespace {

// --- The program's own allocator: malloc under a lock, in the children that ask for it ---

struct spin_lock {
    std::atomic_flag taken = ATOMIC_FLAG_INIT;
    void lock() {
        while (taken.test_and_set(std::memory_order_acquire)) {
        }
    }
    void unlock() { taken.clear(std::memory_order_release); }
};

enum class allocator { plain, spins, blocks };
std::atomic<allocator> chosen{allocator::plain};
[[maybe_unused]] constinit spin_lock allocator_spin_lock;
[[maybe_unused]] pthread_mutex_t allocator_mutex = PTHREAD_MUTEX_INITIALIZER;

// Long enough inside the lock that stops often meet it.
template <class F>
auto under_the_allocators_lock(F f) {
    auto a_while = [&] {
        volatile int spent = 0;
        while (spent < 200) spent = spent + 1;
        return f();
    };
    switch (chosen.load(std::memory_order_relaxed)) {
        case allocator::spins: {
            const std::lock_guard guard{allocator_spin_lock};
            return a_while();
        }
        case allocator::blocks: {
            pthread_mutex_lock(&allocator_mutex);
            struct unlock {
                ~unlock() { pthread_mutex_unlock(&allocator_mutex); }
            } const after;
            return a_while();
        }
        default:
            return f();
    }
}

}  // namespace

#if !defined(UMS_TEST_TSAN)  // ThreadSanitizer has operators of its own.
void* operator new(std::size_t bytes) {
    void* const made = under_the_allocators_lock([bytes] { return std::malloc(bytes); });
    if (made == nullptr) throw std::bad_alloc{};
    return made;
}
void operator delete(void* at) noexcept {
    under_the_allocators_lock([at] { std::free(at); });
}
void operator delete(void* at, std::size_t) noexcept { operator delete(at); }
#endif

namespace {

void compute(std::chrono::microseconds how_long) {
    volatile double sink = 1;
    const auto until = std::chrono::steady_clock::now() + how_long;
    while (std::chrono::steady_clock::now() < until)
        for (int i = 0; i < 100; ++i) sink = sink * 1.0001;
}

using body = std::function<void(int)>;
// Starts that many with numbers from zero on, and joins them.
using starter = std::function<void(int, const body&)>;

struct program {
    const char* name;
    void (*run)(const starter&);
    unsigned time_slice_us = 0;  // 0: the default.
    friend std::ostream& operator<<(std::ostream& out, const program& one) {
        return out << one.name;
    }
};

constexpr int fibers = 4;

template <class Lock>
void hold_across_sleep_and_computing(const starter& start_and_join, Lock& lock) {
    using namespace std::chrono_literals;
    int rounds = 0;
    start_and_join(fibers, [&](int) {
        for (int i = 0; i < 4; ++i) {
            lock.lock();
            usleep(3000);
            compute(20ms);
            ++rounds;
            lock.unlock();
        }
    });
    EXPECT_EQ(rounds, 4 * fibers);
}

void own_spin_lock(const starter& start_and_join) {
    spin_lock lock;
    hold_across_sleep_and_computing(start_and_join, lock);
}

void pthread_spin(const starter& start_and_join) {
    struct {
        pthread_spinlock_t word;
        void lock() { pthread_spin_lock(&word); }
        void unlock() { pthread_spin_unlock(&word); }
    } lock{};
    pthread_spin_init(&lock.word, PTHREAD_PROCESS_PRIVATE);
    hold_across_sleep_and_computing(start_and_join, lock);
    pthread_spin_destroy(&lock.word);
}

void lock_with_sched_yield(const starter& start_and_join) {
    struct {
        std::atomic<bool> taken{false};
        void lock() {
            while (taken.exchange(true, std::memory_order_acquire)) sched_yield();
        }
        void unlock() { taken.store(false, std::memory_order_release); }
    } lock;
    hold_across_sleep_and_computing(start_and_join, lock);
}

// Like an accessor of a concurrent map that is held during I/O.
void read_lock_over_io(const starter& start_and_join) {
    using namespace std::chrono_literals;
    std::atomic<int> readers{0};  // -1 stands for a writer.
    int ends[2];
    if (pipe(ends) != 0) std::abort();
    start_and_join(fibers, [&](int i) {
        for (int k = 0; k < 10; ++k) {
            for (int seen = 0;; seen = i == 0 ? 0 : std::max(seen, 0))
                if (readers.compare_exchange_weak(seen, i == 0 ? -1 : seen + 1)) break;
            char byte = 'x';
            usleep(500);
            EXPECT_EQ(write(ends[1], &byte, 1), 1);
            EXPECT_EQ(read(ends[0], &byte, 1), 1);
            compute(2ms);
            if (i == 0)
                readers = 0;
            else
                --readers;
        }
    });
    close(ends[0]);
    close(ends[1]);
}

void sched_yield_until_a_flag(const starter& start_and_join) {
    std::atomic<int> turn{0};
    start_and_join(fibers, [&](int i) {
        for (int k = 0; k < 2; ++k) {
            while (turn % fibers != i) sched_yield();
            if (i == 0) usleep(1000);
            ++turn;
        }
    });
    EXPECT_EQ(turn, 2 * fibers);
}

// libstdc++'s list of callbacks has a lock that spins.
void stop_source(const starter& start_and_join) {
    std::stop_source source;
    start_and_join(fibers, [&](int) {
        for (int i = 0; i < 300; ++i) {
            for (int k = 0; k < 2000; ++k) const std::stop_callback call{source.get_token(), [] {}};
            usleep(50);
        }
    });
    EXPECT_FALSE(source.stop_requested());
}

void exchange(std::atomic<std::shared_ptr<int>>& shared) {
    auto seen = shared.load();
    while (!shared.compare_exchange_weak(seen, std::make_shared<int>(*seen + 1))) {
    }
}

void shared_pointer_beside_sleep(const starter& start_and_join) {
    std::atomic<std::shared_ptr<int>> shared{std::make_shared<int>(0)};
    start_and_join(fibers, [&](int) {
        for (int i = 0; i < 300; ++i) {
            for (int k = 0; k < 1000; ++k) exchange(shared);
            usleep(50);
        }
    });
    EXPECT_EQ(*shared.load(), fibers * 300'000);
}

void shared_pointer_beside_a_contended_mutex(const starter& start_and_join) {
    std::atomic<std::shared_ptr<int>> shared{std::make_shared<int>(0)};
    std::mutex contended;
    start_and_join(fibers, [&](int) {
        for (int i = 0; i < 100; ++i) {
            {
                const std::lock_guard guard{contended};
                usleep(50);
            }
            for (int k = 0; k < 2000; ++k) exchange(shared);
        }
    });
    EXPECT_EQ(*shared.load(), fibers * 200'000);
}

void allocate(const starter& start_and_join, allocator how) {
    chosen = how;
    std::atomic<int> right{0};
    start_and_join(2 * fibers, [&](int n) {
        for (int i = 0; i < 100; ++i) {
            std::vector<std::unique_ptr<int>> all;
            for (int k = 0; k < 200; ++k) all.push_back(std::make_unique<int>(n));
            right += std::all_of(all.begin(), all.end(), [n](auto& one) { return *one == n; });
            if (i % 4 == 0) usleep(50);
        }
    });
    EXPECT_EQ(right, 2 * fibers * 100);
    chosen = allocator::plain;
}

void allocator_that_spins(const starter& start_and_join) {
    allocate(start_and_join, allocator::spins);
}
void allocator_that_blocks(const starter& start_and_join) {
    allocate(start_and_join, allocator::blocks);
}

// There no fiber blocks for good, and none is stopped for any other reason.
constexpr unsigned until_slices_are_the_default = 10'000;

const program programs[] = {
    {"spin_lock_held_across_sleep_and_computing", &own_spin_lock},
    {"pthread_spin_lock", &pthread_spin},
    {"spin_lock_that_calls_sched_yield", &lock_with_sched_yield},
    {"reader_writer_spin_lock_held_over_io", &read_lock_over_io},
    {"sched_yield_until_a_flag", &sched_yield_until_a_flag, until_slices_are_the_default},
    {"stop_source", &stop_source},
    {"atomic_shared_pointer_beside_sleep", &shared_pointer_beside_sleep},
    {"atomic_shared_pointer_beside_a_contended_mutex", &shared_pointer_beside_a_contended_mutex},
    {"allocator_that_spins", &allocator_that_spins},
    {"allocator_that_blocks", &allocator_that_blocks},
    {"allocator_that_spins_with_slices_of_100_us", &allocator_that_spins, 100},
    {"allocator_that_blocks_with_slices_of_100_us", &allocator_that_blocks, 100},
};

const program& named(const std::string& name) {
    for (const program& one : programs)
        if (name == one.name) return one;
    std::fprintf(stderr, "no such program: %s\n", name.c_str());
    std::exit(99);
}

constexpr int not_possible = 77;

// gtest notes failures here, outside of a test.
int result() { return ::testing::UnitTest::GetInstance()->ad_hoc_test_result().Failed() ? 1 : 0; }

template <class Thread>
void start_and_join(int n, const body& run) {
    std::vector<Thread> all;
    for (int i = 0; i < n; ++i) all.emplace_back([&run, i] { run(i); });
    for (Thread& one : all) one.join();
}

const child_program on_fibers{
    "fibers", [](const child_arguments& arguments) {
        const program& chosen_one = named(arguments.at(0));
        ums::options options{.processors = 1};
        if (chosen_one.time_slice_us != 0) options.time_slice_us = chosen_one.time_slice_us;
        try {
            const conservation nothing_left;
            ums::run(options, [&] { chosen_one.run(&start_and_join<ums::fiber>); });
        } catch (const std::system_error& e) {
            if (e.code() != std::errc::operation_not_supported) throw;
            return not_possible;
        }
        return result();
    }};

const child_program on_kernel_threads{"kernel threads", [](const child_arguments& arguments) {
                                          named(arguments.at(0)).run(&start_and_join<std::thread>);
                                          return result();
                                      }};

class held_lock : public ::testing::TestWithParam<program> {
protected:
    static void ends(const char* where, const child_environment& set) {
        const child_end end = run_child(where, {GetParam().name}, set, std::chrono::seconds{60});
        if (end.code == not_possible) GTEST_SKIP() << "not possible here";
        EXPECT_EQ(end.code, 0) << end;
    }
};

TEST_P(held_lock, ends_on_kernel_threads) { ends("kernel threads", {}); }
TEST_P(held_lock, ends_on_fibers) {
    if (never_stops) GTEST_SKIP() << "fibers are not stopped by a signal under this sanitizer";
    ends("fibers", {{"UMS_BLOCK", "monitor"}});
}

INSTANTIATE_TEST_SUITE_P(all, held_lock, ::testing::ValuesIn(programs),
                         [](const auto& of) { return std::string{of.param.name}; });

}  // namespace
