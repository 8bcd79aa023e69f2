// SPDX-License-Identifier: MIT
// variants: migrate fifo p1 nomembarrier nosync
#include "sched/run/departure.hpp"

#include <atomic>
#include <cerrno>
#include <random>
#include <set>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "support/conservation.hpp"
#include "support/one_processor.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"
#include "ums/ums.hpp"

namespace {

using namespace ums;

class switch_test : public conserving_test {};

// Compilers may compute errno's address once and keep it across a switch, so never name it beside
// one. ThreadSanitizer does not see the C library's accesses; its no_sync mode must not see these
// either, because there it does not order fibers that use one kernel thread's errno in turn.
[[gnu::noinline]] UMS_UNINSTRUMENTED int get_errno() { return errno; }
[[gnu::noinline]] UMS_UNINSTRUMENTED void set_errno(int value) { errno = value; }
[[gnu::noinline]] long kernel_thread() { return ::syscall(SYS_gettid); }

// Returns on how many kernel threads the fiber was seen.
std::size_t keep_errno(std::uint64_t seed, std::atomic<int>& wrong, int rounds) {
    std::mt19937_64 rng{seed};
    std::set<long> threads;
    for (int i = 0; i < rounds; ++i) {
        const int mine = static_cast<int>(rng() % 1'000'000);
        set_errno(mine);
        switch (rng() % 8) {
            case 0:
                fiber{[] { set_errno(-1); }}.join();
                break;
            case 1: {
                fiber waker{[me = this_fiber::ref()] { me.unpark(); }};
                this_fiber::park();
                waker.join();
                break;
            }
            case 2:
                this_fiber::sleep_for(std::chrono::nanoseconds{1});
                break;
            case 3:
                this_fiber::park_for(std::chrono::nanoseconds{1});
                break;
            default:
                this_fiber::yield();
                break;
        }
        wrong += get_errno() != mine;
        threads.insert(kernel_thread());
    }
    return threads.size();
}

void many_keep_their_errno(const options& chosen) {
    const std::uint64_t seed = test_seed();
    std::atomic<int> wrong = 0;
    std::size_t most_threads = 0;
    run(chosen, [&] {
        std::vector<value_fiber<std::size_t>> all;
        for (unsigned f = 0; f < 50; ++f)
            all.push_back(spawn([&, f] { return keep_errno(seed + f, wrong, scaled(400, 60)); }));
        for (auto& f : all) most_threads = std::max(most_threads, f.join());
    });
    EXPECT_EQ(wrong.load(), 0);
    if (chosen.migrate && std::getenv("UMS_PROCESSORS") == nullptr) {
        EXPECT_GE(most_threads, 2u) << "no fiber has changed its carrier";
    }
}

TEST_F(switch_test, errno_is_the_fibers_own_on_one_processor) {
    many_keep_their_errno({.processors = 1});
}

TEST_F(switch_test, errno_is_the_fibers_own_on_two_processors) {
    many_keep_their_errno({.processors = 2});
}

TEST_F(switch_test, errno_follows_a_fiber_to_another_carrier) {
    many_keep_their_errno({.processors = 3, .migrate = true});
}

TEST_F(switch_test, errno_follows_a_fiber_to_another_cluster) {
    // Without hand-offs a processor stays on its kernel thread.
    run(one_processor, [] {
        cluster elsewhere{{.processors = 1}};
        for (int i = 0; i < 100; ++i) {
            set_errno(i);
            const long before = kernel_thread();
            this_fiber::migrate(elsewhere);
            EXPECT_NE(kernel_thread(), before);
            EXPECT_EQ(get_errno(), i);
            this_fiber::migrate(cluster::standard());
            EXPECT_EQ(kernel_thread(), before);
            EXPECT_EQ(get_errno(), i);
        }
    });
}

TEST_F(switch_test, a_new_fiber_starts_with_errno_zero) {
    run({.processors = 2}, [] {
        for (int i = 1; i <= 100; ++i) {
            set_errno(i);
            const fiber_options how{.launch = i % 2 == 0 ? launch::dispatch : launch::post};
            fiber{how,
                  [] {
                      EXPECT_EQ(get_errno(), 0);
                      set_errno(77);
                  }}
                .join();
            EXPECT_EQ(get_errno(), i);
        }
    });
}

TEST_F(switch_test, creating_a_thousand_fibers_leaves_errno_alone) {
    run({.processors = 2}, [] {
        set_errno(4711);
        std::vector<fiber> all;
        for (int i = 0; i < 1'000; ++i) all.emplace_back([] { this_fiber::yield(); });
        EXPECT_EQ(get_errno(), 4711);
        for (fiber& f : all) f.join();
        EXPECT_EQ(get_errno(), 4711);
    });
}

TEST_F(switch_test, a_plain_threads_errno_survives_join_and_unpark) {
    runtime started{{.processors = 1}};
    for (int i = 0; i < 100; ++i) {
        set_errno(i);
        fiber f{[] { this_fiber::park(); }};
        f.ref().unpark();
        f.join();
        EXPECT_EQ(get_errno(), i);
    }
}

}  // namespace
