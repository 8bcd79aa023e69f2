// SPDX-License-Identifier: MIT
// variants: migrate fifo p1 nomembarrier nosync
//
// Without a detector, a marked region gives up its processor at once.
#include "ums/blocking.hpp"

#include <atomic>
#include <cerrno>
#include <random>
#include <stdexcept>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "sched/block/carrier_pool.hpp"
#include "sched/run/carrier.hpp"
#include "sched/run/cluster.hpp"
#include "support/conservation.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"
#include "ums/cluster.hpp"
#include "ums/fiber.hpp"
#include "ums/mutex.hpp"
#include "ums/run.hpp"
#include "ums/semaphore.hpp"
#include "ums/this_fiber.hpp"

namespace {

using blocking_test = conserving_test;

// A pipe that is read inside regions and written by fibers.
class pipe_end {
public:
    pipe_end() { EXPECT_EQ(pipe(ends_), 0); }
    ~pipe_end() {
        close(ends_[0]);
        close(ends_[1]);
    }
    void put(char c) { EXPECT_EQ(write(ends_[1], &c, 1), 1); }
    char take() {
        char c = 0;
        EXPECT_EQ(read(ends_[0], &c, 1), 1);
        return c;
    }

private:
    int ends_[2];
};

TEST_F(blocking_test, the_other_fibers_go_on_while_one_blocks) {
    ums::run({.processors = 1}, [] {
        pipe_end pipe;
        char got = 0;
        ums::fiber reader{[&] { got = ums::blocking([&] { return pipe.take(); }); }};
        ums::this_fiber::yield();  // The reader blocks; without a hand-off this would not return.
        pipe.put('x');
        reader.join();
        EXPECT_EQ(got, 'x');
    });
}

// Each pool counts its own permits; there is one for each of the two clusters.
TEST_F(blocking_test, a_region_that_migrates_takes_a_permit_of_its_new_cluster) {
    ums::options few{.processors = 1};
    few.carriers = 2;
    ums::run(few, [] {
        ums::cluster other{{.name = "other", .processors = 1, .carriers = 2}};
        for (int i = 0; i < 3; ++i) {
            ums::fiber{[&] {
                ums::blocking([&] {
                    ums::blocking([&] { ums::this_fiber::migrate(other); });
                    EXPECT_EQ(ums::sched::this_carrier()->pool.home().name(), "other");
                });
                ums::blocking([&] {
                    ums::this_fiber::migrate(ums::cluster::standard());
                    ums::this_fiber::migrate(other);
                });
            }}.join();
            ums::fiber{{.cluster = &other}, [] { ums::blocking([] {}); }}.join();
            ums::fiber{[] { ums::blocking([] {}); }}.join();
        }
        // No permit was taken twice, and none was given back that had not been taken.
        EXPECT_FALSE(ums::sched::this_carrier()->pool.any_away());
    });
}

TEST_F(blocking_test, many_regions_block_at_once) {
    ums::run({.processors = 2}, [] {
        constexpr int n = 50;
        std::vector<pipe_end> pipes(n);
        std::vector<ums::fiber> readers;
        std::atomic<int> inside = 0;
        for (int i = 0; i < n; ++i)
            readers.emplace_back([&pipes, &inside, i] {
                ++inside;
                const char c =
                    ums::blocking([&] { return pipes[static_cast<std::size_t>(i)].take(); });
                EXPECT_EQ(c, static_cast<char>('a' + i % 26));
            });
        while (inside < n) ums::this_fiber::yield();
        for (int i = n; i-- > 0;)
            pipes[static_cast<std::size_t>(i)].put(static_cast<char>('a' + i % 26));
        for (auto& r : readers) r.join();
    });
}

TEST_F(blocking_test, a_region_returns_what_the_call_returns_and_keeps_errno) {
    ums::run({.processors = 1}, [] {
        // A call sets errno: naming it here would be a race for ThreadSanitizer, which does not see
        // whose errno it is.
        ums::fiber other{[] { EXPECT_EQ(::access("", F_OK), -1); }};
        char c = 0;
        const auto result = ums::blocking([&] { return read(-1, &c, 1); });
        EXPECT_EQ(result, -1);
        EXPECT_EQ(errno, EBADF);
        int number = 5;
        int& same = ums::blocking([&]() -> int& { return number; });
        EXPECT_EQ(&same, &number);
        ums::blocking([] {});
        other.join();
    });
}

TEST_F(blocking_test, what_the_call_throws_passes_through) {
    ums::run({.processors = 1}, [] {
        for (int i = 0; i < 100; ++i) {
            ums::fiber other{[] {
                try {
                    throw 7;
                } catch (int n) {
                    EXPECT_EQ(n, 7);
                }
            }};
            try {
                ums::blocking([]() -> void { throw std::runtime_error{"from the region"}; });
                FAIL();
            } catch (const std::runtime_error& e) {
                EXPECT_STREQ(e.what(), "from the region");
                ums::blocking([] {});  // This also works with an exception in flight.
                EXPECT_STREQ(e.what(), "from the region");
            }
            other.join();
        }
    });
}

TEST_F(blocking_test, regions_nest) {
    ums::run({.processors = 1}, [] {
        pipe_end pipe;
        ums::fiber reader{[&] {
            ums::blocking([&] {
                ums::blocking([] {});
                EXPECT_EQ(pipe.take(), 'n');
            });
        }};
        ums::this_fiber::yield();
        pipe.put('n');
        reader.join();
    });
}

TEST_F(blocking_test, a_region_may_wait_in_libums_and_spawn) {
    ums::run({.processors = 1}, [] {
        ums::counting_semaphore<> go{0};
        ums::mutex m;
        int sum = 0;
        std::vector<ums::fiber> fibers;
        for (int i = 0; i < 20; ++i)
            fibers.emplace_back([&] {
                ums::blocking([&] {
                    ums::fiber child{[&] {
                        const std::lock_guard guard{m};
                        ++sum;
                    }};
                    go.acquire();
                    child.join();
                    const std::lock_guard guard{m};
                    ++sum;
                });
            });
        for (int i = 0; i < 20; ++i) go.release();
        for (auto& f : fibers) f.join();
        EXPECT_EQ(sum, 40);
    });
}

TEST_F(blocking_test, a_plain_thread_is_let_alone) {
    EXPECT_EQ(ums::blocking([] { return 3; }), 3);
    ums::runtime started{{.processors = 1}};
    EXPECT_EQ(ums::blocking([] { return 4; }), 4);
}

TEST_F(blocking_test, regions_wait_for_a_carrier_past_the_bound_and_no_more_are_made) {
    ums::run({.processors = 1, .carriers = 4}, [] {
        constexpr int n = 30;
        std::vector<pipe_end> pipes(n);
        std::vector<ums::fiber> readers;
        ums::counting_semaphore<> done{0};
        for (int i = 0; i < n; ++i)
            readers.emplace_back([&, i] {
                ums::blocking([&] { return pipes[static_cast<std::size_t>(i)].take(); });
                done.release();
            });
        auto& pool = ums::sched::this_carrier()->pool;
        while (pool.counters().waits < 20) ums::this_fiber::yield();
        // A fiber writes each; only a few may be read at once, in order of arrival.
        for (int i = 0; i < n; ++i) {
            pipes[static_cast<std::size_t>(i)].put('b');
            done.acquire();
        }
        for (auto& r : readers) r.join();
        EXPECT_LE(pool.counters().peak, std::max(4U, ums::cluster::standard().processors() + 1));
    });
}

TEST_F(blocking_test, short_and_long_regions_at_random_lose_nothing) {
    ums::run({.processors = 2, .carriers = 12}, [] {
        constexpr int fibers = 40;
        const int rounds = scaled(200, 20);
        std::atomic<int> ended = 0;
        std::vector<ums::fiber> all;
        const auto seed = test_seed();
        for (int i = 0; i < fibers; ++i)
            all.emplace_back([&, i] {
                std::mt19937_64 random{seed + static_cast<unsigned>(i)};
                for (int r = 0; r < rounds; ++r) {
                    switch (random() % 4) {
                        case 0:
                            ums::blocking([] { std::this_thread::yield(); });
                            break;
                        case 1:
                            ums::blocking([&] { usleep(static_cast<unsigned>(random() % 200)); });
                            break;
                        case 2:
                            ums::this_fiber::sleep_for(std::chrono::microseconds{random() % 100});
                            break;
                        default:
                            ums::this_fiber::yield();
                    }
                }
                ++ended;
            });
        for (auto& f : all) f.join();
        EXPECT_EQ(ended, fibers);
        EXPECT_LE(ums::sched::this_carrier()->pool.counters().peak, 12U);
    });
}

TEST_F(blocking_test, processors_come_and_go_while_regions_block) {
    ums::run({.processors = 2}, [] {
        pipe_end pipe;
        std::atomic<int> inside = 0;
        std::vector<ums::fiber> readers;
        for (int i = 0; i < 8; ++i)
            readers.emplace_back([&] {
                ++inside;
                ums::blocking([&] { return pipe.take(); });
            });
        while (inside < 8) ums::this_fiber::yield();
        auto& here = ums::cluster::standard();
        for (int i = 0; i < 5; ++i) {
            here.add_processor();
            ums::this_fiber::yield();
            here.remove_processor();
        }
        if (here.processors() > 1) here.remove_processor();
        for (int i = 0; i < 8; ++i) pipe.put('p');
        for (auto& r : readers) r.join();
    });
}

}  // namespace
