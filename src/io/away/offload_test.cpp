// SPDX-License-Identifier: MIT

#include "io/away/offload.hpp"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <dlfcn.h>
#include <fcntl.h>
#include <functional>
#include <latch>
#include <new>
#include <pthread.h>
#include <sched.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "os/thread/slice.hpp"
#include "support/conservation.hpp"
#include "ums/ums.hpp"

#if !defined(UMS_TEST_ASAN) && !defined(UMS_TEST_TSAN) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define UMS_TEST_REFUSES_THREADS 1

namespace {
std::atomic<bool> refuses_threads{false};
std::atomic<int> refused{0};
thread_local bool is_starving = false;  // The thread has no memory.
}  // namespace

// Not inlined: GCC warns about free() if it sees through only one of the pair.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
    void* const made = is_starving ? nullptr : std::malloc(bytes);
    if (made == nullptr) throw std::bad_alloc{};
    return made;
}
[[gnu::noinline]] void operator delete(void* at) noexcept { std::free(at); }
void operator delete(void* at, std::size_t) noexcept { operator delete(at); }

// The standard library finds this function before the C library's.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*start)(void*), void* argument) noexcept {
    using function = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
    static const auto next = reinterpret_cast<function>(::dlsym(RTLD_NEXT, "pthread_create"));
    if (refuses_threads) {
        ++refused;
        return EAGAIN;
    }
    return next(thread, attributes, start, argument);
}

#endif

namespace {

using namespace ums;

class offload_test : public conserving_test {
protected:
    offload_test() noexcept : idle_ns_{io::offload_pool::idle_ns.load(base::relaxed)} {}
    ~offload_test() override { io::offload_pool::idle_ns.store(idle_ns_, base::relaxed); }

    static void end_idle_threads_at_once() noexcept {
        io::offload_pool::idle_ns.store(1, base::relaxed);
    }

    // Makes that many calls at once, each of which blocks until all have begun.
    static void call_at_once(unsigned n) {
        std::latch all_begun{n};
        std::vector<fiber> callers;
        for (unsigned i = 0; i < n; ++i)
            callers.emplace_back(
                [&] { ums::offload([&all_begun] { all_begun.arrive_and_wait(); }); });
        for (fiber& f : callers) f.join();
    }

private:
    const std::int64_t idle_ns_;
};

TEST_F(offload_test, threads_that_are_not_needed_end_until_one_is_left) {
    end_idle_threads_at_once();
    run([] {
        for (int round = 0; round < 10; ++round) {
            call_at_once(5);
            while (offload_stats().threads > 1) this_fiber::yield();
        }
        EXPECT_EQ(offload_stats().calls, 50u);
        EXPECT_EQ(offload_stats().waited, 0u);
    });
}

TEST_F(offload_test, calls_beyond_the_limit_wait_for_those_before) {
    const unsigned most = offload_stats().most;
    run([] {
        set_offload_limit(1);
        std::atomic<int> at_once{0};
        std::vector<fiber> callers;
        for (int i = 0; i < 10; ++i)
            callers.emplace_back([&] {
                ums::offload([&] {
                    EXPECT_EQ(++at_once, 1);
                    --at_once;
                });
            });
        for (fiber& f : callers) f.join();
        EXPECT_EQ(offload_stats().threads, 1u);
    });
    set_offload_limit(most);
}

// A limit that the program has set is one also where its calls sleep.
TEST_F(offload_test, calls_that_sleep_count_against_a_limit_that_was_set) {
    const unsigned most = offload_stats().most;
    const std::int64_t asleep_ns = io::offload_pool::asleep_ns.load(base::relaxed);
    io::offload_pool::asleep_ns.store(10'000, base::relaxed);
    run([] {
        set_offload_limit(1);
        std::latch over{1};
        std::vector<fiber> callers;
        for (int i = 0; i < 2; ++i)
            callers.emplace_back([&] { ums::offload([&] { over.wait(); }); });
        while (offload_stats().queued == 0) this_fiber::yield();
        // A call of ours is excused, and so are many after it.
        char folder[] = "/tmp/ums-offload-test-XXXXXX";
        ASSERT_NE(::mkdtemp(folder), nullptr);
        const std::string path = std::string{folder} + "/fifo";
        ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
        for (int i = 0; i < 200; ++i) {
            fiber reader{[&] { io::close(io::open(path.c_str(), O_RDONLY).value()).value(); }};
            io::close(io::open(path.c_str(), O_WRONLY).value()).value();
            reader.join();
        }
        ::unlink(path.c_str());
        ::rmdir(folder);
        EXPECT_EQ(offload_stats().queued, 1u);
        over.count_down();
        for (fiber& f : callers) f.join();
    });
    io::offload_pool::asleep_ns.store(asleep_ns, base::relaxed);
    set_offload_limit(most);
}

TEST_F(offload_test, a_limit_that_grows_starts_threads_for_the_next_call) {
    const unsigned most = offload_stats().most;
    run([most] {
        set_offload_limit(1);
        std::latch second{1};
        fiber first{[&] { ums::offload([&] { second.wait(); }); }};
        while (offload_stats().busy == 0) this_fiber::yield();
        set_offload_limit(most);
        ums::offload([&] { second.count_down(); });
        first.join();
    });
}

#if !defined(UMS_TEST_REFUSES_THREADS)

TEST_F(offload_test, a_refused_thread_ends_no_program_whose_pool_was_idle) {
    GTEST_SKIP() << "the sanitizers have a pthread_create of their own";
}

#else

// One of its threads has ended by itself, and is still to be joined.
TEST_F(offload_test, a_runtime_stops_without_memory) {
    end_idle_threads_at_once();
    runtime all;
    fiber{[] {
        call_at_once(3);
        while (offload_stats().threads > 1) this_fiber::yield();
    }}.join();
    is_starving = true;
    all.stop();
    is_starving = false;
}

TEST_F(offload_test, a_refused_thread_ends_no_program_whose_pool_was_idle) {
    end_idle_threads_at_once();
    // No detector: its hand-off would need a thread, too.
    run({.block = block_detection::off}, [] {
        for (int round = 0; round < 100; ++round) {
            call_at_once(3);
            while (offload_stats().threads > 1) this_fiber::yield();
            refuses_threads = true;
            EXPECT_EQ(ums::offload([] { return 7; }), 7);
            refuses_threads = false;
            EXPECT_EQ(ums::offload([] { return 8; }), 8);
        }
    });
}

TEST_F(offload_test, calls_wait_for_the_threads_there_are_while_no_other_can_be_had) {
    run({.block = block_detection::off}, [] {
        refused = 0;
        refuses_threads = true;
        std::vector<fiber> callers;
        for (int i = 0; i < 10; ++i)
            callers.emplace_back([i] { EXPECT_EQ(ums::offload([i] { return i; }), i); });
        for (fiber& f : callers) f.join();
        EXPECT_GT(refused, 0);
        EXPECT_EQ(offload_stats().threads, 1u);
        refuses_threads = false;
        call_at_once(5);  // From now on there are more threads.
    });
}

#endif

// --- What a thread of the pool inherits ---

struct inheritance {
    cpu_set_t cpus;
    os::nanoseconds slice;
    friend bool operator==(const inheritance& a, const inheritance& b) noexcept {
        return CPU_EQUAL(&a.cpus, &b.cpus) && a.slice == b.slice;
    }
};

inheritance of_this_thread() {
    inheritance i{};
    EXPECT_EQ(::sched_getaffinity(0, sizeof i.cpus, &i.cpus), 0);
    i.slice = os::asked_slice();
    return i;
}

TEST_F(offload_test, threads_of_the_pool_inherit_nothing_from_a_pinned_carrier) {
    const inheritance plain = of_this_thread();
    if (CPU_COUNT(&plain.cpus) < 2) GTEST_SKIP() << "one CPU";
    end_idle_threads_at_once();
    run({.processors = 2, .pin = true}, [&] {
        for (int round = 0; round < 3; ++round) {
            std::latch all_begun{4};
            std::vector<fiber> callers;
            for (int i = 0; i < 4; ++i)
                callers.emplace_back([&] {
                    const inheritance its = ums::offload([&] {
                        all_begun.arrive_and_wait();
                        return of_this_thread();
                    });
                    EXPECT_TRUE(its == plain);
                });
            for (fiber& f : callers) f.join();
        }
    });
}

// The fiber starts the thread itself, as it does when the limit has grown while all are busy.
TEST_F(offload_test, nor_does_one_that_a_fiber_of_a_pinned_carrier_has_to_start) {
    const inheritance plain = of_this_thread();
    if (CPU_COUNT(&plain.cpus) < 2) GTEST_SKIP() << "one CPU";
    const unsigned most = offload_stats().most;
    run({.processors = 2, .pin = true}, [&] {
        set_offload_limit(1);
        std::latch second{1};
        fiber first{[&] { ums::offload([&] { second.wait(); }); }};
        while (offload_stats().busy == 0) this_fiber::yield();
        set_offload_limit(most);
        EXPECT_TRUE(ums::offload(&of_this_thread) == plain);
        second.count_down();
        first.join();
    });
}

}  // namespace
