// SPDX-License-Identifier: MIT
// variants: migrate fifo p1 nomembarrier nosync
#include "ums/semaphore.hpp"

#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <random>
#include <semaphore>
#include <stop_token>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "support/both_worlds.hpp"
#include "support/child.hpp"
#include "support/conservation.hpp"
#include "support/one_processor.hpp"
#include "support/plain_thread.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"

namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using ums::fiber;
using semaphore = ums::counting_semaphore<>;
namespace this_fiber = ums::this_fiber;

static_assert(std::is_same_v<ums::binary_semaphore, ums::counting_semaphore<1>>);
static_assert(ums::binary_semaphore::max() >= 1);
static_assert(ums::counting_semaphore<1000>::max() >= 1000);
static_assert(semaphore::max() >= std::counting_semaphore<>::max());
static_assert(!std::is_copy_constructible_v<semaphore> && !std::is_copy_assignable_v<semaphore>);
static_assert(std::is_constructible_v<semaphore, std::ptrdiff_t> &&
              !std::is_convertible_v<std::ptrdiff_t, semaphore>);
static_assert(std::is_trivially_destructible_v<semaphore>);
static_assert(noexcept(std::declval<semaphore&>().try_acquire()));
constinit semaphore static_semaphore{std::numeric_limits<std::ptrdiff_t>::max()};

class semaphore_test : public conserving_test {};

int permits_left(auto& s) {
    int n = 0;
    while (s.try_acquire()) ++n;
    return n;
}

TEST_F(semaphore_test, release_before_acquire_leaves_a_permit) {
    on_a_fiber_and_on_a_thread([] {
        semaphore s{0};
        EXPECT_FALSE(s.try_acquire());
        s.release();
        s.acquire();
        EXPECT_FALSE(s.try_acquire());
        s.release(3);
        s.release(0);
        EXPECT_EQ(permits_left(s), 3);
    });
}

TEST_F(semaphore_test, the_largest_number_of_permits_fits) {
    EXPECT_TRUE(static_semaphore.try_acquire());
    static_semaphore.release();
    ums::counting_semaphore<0> none{0};
    EXPECT_FALSE(none.try_acquire());
}

TEST_F(semaphore_test, an_acquire_waits_for_a_release_by_anybody) {
    on_a_fiber_and_on_a_thread([] {
        semaphore there{0}, back{0};
        auto partner = [&] {
            for (int i = 0; i < scaled(2000, 200); ++i) {
                there.acquire();
                back.release();
            }
        };
        auto rally = [&] {
            for (int i = 0; i < scaled(2000, 200); ++i) {
                there.release();
                back.acquire();
            }
        };
        fiber f{partner};
        rally();
        f.join();
        plain_thread t{partner};
        rally();
        t.join();
        EXPECT_FALSE(there.try_acquire());
        EXPECT_FALSE(back.try_acquire());
    });
}

TEST_F(semaphore_test, permits_go_round_in_the_order_of_arrival) {
    ums::run(one_processor, [] {
        for (const int waiters : {1, 2, 3, 100}) {
            semaphore s{0};
            std::vector<int> order;
            std::vector<fiber> all;
            for (int i = 0; i < waiters; ++i) {
                all.emplace_back([&, i] {
                    s.acquire();
                    order.push_back(i);
                });
                this_fiber::yield();
            }
            for (std::size_t i = 0; i < all.size(); ++i) {
                s.release();
                // It belongs to the first waiter, though that has not run yet.
                EXPECT_FALSE(s.try_acquire());
                all[i].join();
                EXPECT_EQ(order.size(), i + 1);
            }
        }
    });
}

TEST_F(semaphore_test, a_release_of_more_than_wait_leaves_the_rest) {
    on_a_fiber_and_on_a_thread([] {
        for (const int waiters : {0, 1, 2, 3, 10}) {
            semaphore s{0};
            std::vector<fiber> all;
            for (int i = 0; i < waiters; ++i) all.emplace_back([&] { s.acquire(); });
            this_fiber::yield();
            s.release(waiters + 5);
            for (fiber& f : all) f.join();
            EXPECT_EQ(permits_left(s), 5);
        }
    });
}

// Any of the waiters may give up: the one in the word, the one moved from there, another.
TEST_F(semaphore_test, a_waiter_that_gives_up_leaves_the_others_their_turns) {
    ums::run(one_processor, [] {
        for (std::size_t waiters = 1; waiters <= 4; ++waiters) {
            for (std::size_t leaves = 0; leaves < waiters; ++leaves) {
                semaphore s{0};
                std::stop_source stop;
                std::vector<std::size_t> order;
                std::vector<fiber> all;
                for (std::size_t i = 0; i < waiters; ++i) {
                    all.emplace_back([&, i] {
                        if (i == leaves)
                            EXPECT_FALSE(s.acquire(stop.get_token()));
                        else
                            s.acquire();
                        order.push_back(i);
                    });
                    this_fiber::yield();
                }
                stop.request_stop();
                all[leaves].join();
                EXPECT_EQ(order.size(), 1u);
                for (std::size_t i = 0; i < waiters; ++i) {
                    if (i == leaves) continue;
                    s.release();
                    all[i].join();
                    EXPECT_EQ(order.back(), i);
                }
                EXPECT_EQ(order.size(), waiters);
                EXPECT_FALSE(s.try_acquire());
                s.release();
                EXPECT_TRUE(s.try_acquire());
            }
        }
    });
}

TEST_F(semaphore_test, a_deadline_ends_the_wait_and_none_is_early) {
    on_a_fiber_and_on_a_thread([] {
        semaphore s{0};
        const auto start = steady_clock::now();
        EXPECT_FALSE(s.try_acquire_for(2ms));
        EXPECT_GE(steady_clock::now(), start + 2ms);
        EXPECT_FALSE(s.try_acquire_until(start));
        const auto wall = std::chrono::system_clock::now() + 1ms;
        EXPECT_FALSE(s.try_acquire_until(wall));
        EXPECT_GE(std::chrono::system_clock::now(), wall);
        EXPECT_FALSE(s.try_acquire_for(-1s));
        s.release(3);
        EXPECT_TRUE(s.try_acquire_for(-1s));
        EXPECT_TRUE(s.try_acquire_until(steady_clock::time_point::min()));
        EXPECT_TRUE(s.try_acquire_for(std::chrono::hours::max()));
    });
}

TEST_F(semaphore_test, a_stop_ends_the_wait_and_a_permit_is_preferred) {
    on_a_fiber_and_on_a_thread([] {
        semaphore s{0};
        std::stop_source stop;
        fiber a{[&] { EXPECT_FALSE(s.acquire(stop.get_token())); }};
        plain_thread b{[&] { EXPECT_FALSE(s.acquire(stop.get_token())); }};
        stop.request_stop();
        a.join();
        b.join();
        EXPECT_FALSE(s.acquire(stop.get_token()));
        s.release();
        EXPECT_TRUE(s.acquire(stop.get_token()));
        s.release();
        EXPECT_TRUE(s.acquire(std::stop_token{}));
    });
}

TEST_F(semaphore_test, no_more_are_inside_than_there_are_permits) {
    ums::run({.processors = 2}, [] {
        constexpr int most = 3, rounds = scaled(2000, 200);
        ums::counting_semaphore<most> s{most};
        std::atomic<int> inside = 0;
        on_threads_and_fibers(4, 40, [&](int n) {
            for (int i = 0; i < rounds; ++i) {
                s.acquire();
                EXPECT_LE(++inside, most);
                if ((i + n) % 16 == 0) this_fiber::yield();
                --inside;
                s.release();
            }
        });
        EXPECT_EQ(permits_left(s), most);
    });
}

// Each may leave by its permit, its deadline or its stop; a released permit is acquired or is left.
TEST_F(semaphore_test, releases_deadlines_and_stops_race_and_no_permit_is_lost_or_made) {
    const auto seed = test_seed();
    ums::run({.processors = 2}, [seed] {
        constexpr int rounds = scaled(10'000, 300);
        semaphore s{0};
        std::atomic<std::int64_t> released = 0, acquired = 0, gave_up = 0;
        on_threads_and_fibers(4, 24, [&](int n) {
            std::minstd_rand random{static_cast<unsigned>(seed) + static_cast<unsigned>(n)};
            for (int i = 0; i < rounds; ++i) {
                if (n % 2 == 0) {
                    const int some = static_cast<int>(random() % 3);
                    released += some;
                    s.release(some);
                    if (random() % 4 == 0) this_fiber::yield();
                    continue;
                }
                bool got;
                if (random() % 4 != 0) {
                    got = s.try_acquire_for(std::chrono::nanoseconds{random() % 20'000});
                } else {
                    std::stop_source stop;
                    std::atomic<bool> is_done = false;
                    fiber stopper{[&] {
                        stop.request_stop();
                        is_done = true;
                    }};
                    got = s.acquire(stop.get_token());
                    stopper.join();
                    EXPECT_TRUE(is_done);
                }
                ++(got ? acquired : gave_up);
            }
        });
        EXPECT_EQ(acquired + gave_up, std::int64_t{14} * rounds);
        EXPECT_EQ(released, acquired + permits_left(s));
    });
}

// The number also stays exact while a few permits go round among many waiters that often give up.
TEST_F(semaphore_test, scarce_permits_with_short_deadlines_stay_the_same_number) {
    const auto seed = test_seed();
    for (const int permits : {1, 2}) {
        ums::run({.processors = 2}, [seed, permits] {
            constexpr int rounds = scaled(3000, 300);
            semaphore s{permits};
            std::atomic<int> inside = 0;
            on_threads_and_fibers(2, permits * 2, [&](int n) {
                std::minstd_rand random{static_cast<unsigned>(seed) + static_cast<unsigned>(n)};
                for (int i = 0; i < rounds; ++i) {
                    if (!s.try_acquire_for(std::chrono::nanoseconds{random() % 5'000})) continue;
                    EXPECT_LE(++inside, permits);
                    if (random() % 2 == 0) this_fiber::yield();
                    --inside;
                    s.release();
                }
            });
            EXPECT_EQ(permits_left(s), permits);
        });
    }
}

TEST_F(semaphore_test, may_be_destroyed_right_after_the_wake_up) {
    on_a_fiber_and_on_a_thread([] {
        for (int i = 0; i < scaled(1500, 150); ++i) {
            auto* s = new semaphore{0};
            auto last = [s] {
                s->acquire();
                delete s;
            };
            if (i % 16 == 15) {
                plain_thread waiter{last};
                s->release();
                waiter.join();
            } else {
                fiber waiter{last};
                if (i % 2 == 0) this_fiber::yield();
                s->release();
                waiter.join();
            }
        }
    });
}

TEST_F(semaphore_test, may_be_destroyed_right_after_the_last_of_several_wake_ups) {
    ums::run({.processors = 2}, [] {
        for (int i = 0; i < scaled(2000, 200); ++i) {
            constexpr int waiters = 3;
            auto* s = new semaphore{0};
            std::atomic<int> inside = waiters;
            std::vector<fiber> all;
            for (int n = 0; n < waiters; ++n)
                all.emplace_back([&inside, s] {
                    s->acquire();
                    if (--inside == 0) delete s;
                });
            if (i % 2 == 0) this_fiber::yield();
            fiber other{[s] { s->release(); }};
            s->release(waiters - 1);
            for (fiber& f : all) f.join();
            other.join();
        }
    });
}

const child_program releases_too_many{"releases_too_many", [](const child_arguments&) {
                                          ums::binary_semaphore s{1};
                                          s.release();
                                          return 0;
                                      }};
const child_program releases_less_than_none{"releases_less_than_none", [](const child_arguments&) {
                                                semaphore s{1};
                                                s.release(-1);
                                                return 0;
                                            }};
const child_program begins_with_too_many{"begins_with_too_many", [](const child_arguments&) {
                                             const ums::binary_semaphore s{2};
                                             return 0;
                                         }};

TEST(semaphore_misuse_test, a_number_of_permits_out_of_range_ends_the_program) {
    const auto says = [](const char* program, const char* message) {
        const child_end end = run_child(program);
        EXPECT_NE(end.code, 0) << program;
        EXPECT_NE(end.err.find(message), end.err.npos) << end;
    };
    says("releases_too_many", "release() of more permits than a semaphore's max()");
    says("releases_less_than_none", "release() of a negative number of permits");
    says("begins_with_too_many", "a semaphore with less than 0 or more than max() permits");
}

}  // namespace
