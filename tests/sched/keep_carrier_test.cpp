// SPDX-License-Identifier: MIT
// variants: migrate fifo p1 nomembarrier nosync monitor policies
//
// A fiber inside ums::keep_carrier stays on its kernel thread, and no other fiber runs there.
#include "ums/keep_carrier.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/conservation.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"
#include "support/variant.hpp"
#include "ums/ums.hpp"

namespace {

using namespace std::chrono_literals;
using keep_carrier_test = conserving_test;

// Which fiber has a kernel thread to itself: of the thread, so that another one is seen there.
thread_local int tenant = 0;

[[gnu::noinline]] int& this_threads_tenant() { return tenant; }

// A scope that checks what a scope promises, each time it is asked.
class lodging {
public:
    explicit lodging(int who) : who_{who} {
        EXPECT_EQ(std::exchange(this_threads_tenant(), who_), 0) << "another fiber lives here";
    }
    ~lodging() {
        check();
        this_threads_tenant() = 0;
    }
    lodging(const lodging&) = delete;
    lodging& operator=(const lodging&) = delete;

    void check() const {
        EXPECT_EQ(gettid(), thread_) << "it changed its kernel thread";
        EXPECT_EQ(this_threads_tenant(), who_) << "another fiber was here";
    }
    template <class F>
    void through(F wait) const {
        wait();
        check();
    }

private:
    const ums::keep_carrier kept_;
    const int who_;
    const pid_t thread_ = gettid();
};

// To read from a descriptor.
class pipe_end {
public:
    pipe_end() { EXPECT_EQ(pipe(ends_), 0); }
    ~pipe_end() {
        close(ends_[0]);
        close(ends_[1]);
    }
    void put() { EXPECT_EQ(write(ends_[1], "x", 1), 1); }
    [[nodiscard]] int in() const { return ends_[0]; }

private:
    int ends_[2] = {-1, -1};
};

TEST_F(keep_carrier_test, a_fiber_that_waits_keeps_its_thread_and_others_run_on_elsewhere) {
    ums::run({.processors = 1}, [] {
        std::vector<pid_t> others;
        std::atomic<bool> waits = false;
        ums::fiber keeper{[&] {
            const lodging here{1};
            waits = true;
            here.through([] { ums::this_fiber::park(); });
            others.push_back(gettid());
        }};
        while (!waits) ums::this_fiber::yield();
        for (int i = 0; i < 100; ++i) {
            others.push_back(gettid());
            ums::this_fiber::yield();
        }
        const pid_t last_seen = others.back();
        keeper.ref().unpark();
        keeper.join();
        EXPECT_EQ(others.size(), 101U) << "others ran while it was parked";
        EXPECT_NE(others.back(), last_seen) << "on another kernel thread than its own";
    });
}

TEST_F(keep_carrier_test, it_stays_through_every_kind_of_wait) {
    ums::run([] {
        ums::mutex m;
        ums::condition_variable changed;
        ums::counting_semaphore<> permits{0};
        ums::channel<int> to{0}, from{0};
        ums::manual_reset_event told;
        bool is_set = false;
        pipe_end pipe;
        const int rounds = scaled(50, 10);
        ums::fiber keeper{[&] {
            const lodging here{1};
            for (int i = 0; i < rounds; ++i) {
                here.through([] { ums::this_fiber::yield(); });
                here.through([] { ums::this_fiber::park(); });
                here.through([] { ums::this_fiber::sleep_for(10us); });
                here.through([] {
                    EXPECT_EQ(ums::this_fiber::park_until(ums::deadline_after(10us)),
                              ums::wake_reason::deadline_passed);
                });
                here.through([&] {
                    std::unique_lock lock{m};
                    changed.wait(lock, [&] { return is_set; });
                    is_set = false;
                });
                here.through([&] { permits.acquire(); });
                here.through([&] { EXPECT_EQ(to.send(i), ums::channel_status::ok); });
                here.through([&] { EXPECT_EQ(from.receive(), -i); });
                here.through([&] { EXPECT_TRUE(ums::io::wait_readable(pipe.in())); });
                char c = 0;
                here.through([&] { EXPECT_EQ(ums::io::read(pipe.in(), &c, 1).value(), 1U); });
                here.through([&] { ums::offload([] {}); });
                here.through([&] { ums::fiber{[] { ums::this_fiber::yield(); }}.join(); });
                here.through([&] { EXPECT_EQ(ums::spawn([&] { return i; }).join(), i); });
                here.through([] { ums::fiber{{.launch = ums::launch::dispatch}, [] {}}.join(); });
                here.through([] { ums::blocking([] { usleep(100); }); });
                here.through([] { usleep(100); });
            }
            told.set();
        }};
        for (int i = 0; i < rounds; ++i) {
            keeper.ref().unpark();
            {
                const std::lock_guard guard{m};
                is_set = true;
                changed.notify_one();
            }
            permits.release();
            EXPECT_EQ(to.receive(), i);
            EXPECT_EQ(from.send(-i), ums::channel_status::ok);
            pipe.put();
        }
        told.wait();
        keeper.join();
    });
}

TEST_F(keep_carrier_test, a_deadline_a_stop_and_an_early_unpark_end_a_wait) {
    ums::run([] {
        std::stop_source stop;
        std::atomic<bool> waits = false;
        ums::fiber keeper{[&] {
            const lodging here{1};
            here.through([] { ums::this_fiber::park(); });  // Unparked already, or soon.
            here.through([] {
                EXPECT_EQ(ums::this_fiber::park_until(ums::deadline_after(1ms)),
                          ums::wake_reason::deadline_passed);
            });
            waits = true;
            here.through([&] {
                EXPECT_EQ(ums::this_fiber::park(stop.get_token()), ums::wake_reason::stopped);
            });
            here.through([&] {
                EXPECT_EQ(ums::this_fiber::park(stop.get_token()), ums::wake_reason::stopped);
            });
        }};
        keeper.ref().unpark();
        while (!waits) ums::this_fiber::yield();
        stop.request_stop();
        keeper.join();
    });
}

TEST_F(keep_carrier_test, a_plain_thread_wakes_it_and_does_nothing_by_a_scope) {
    const ums::keep_carrier without_a_runtime;
    ums::run([] {
        std::atomic<int> rounds = 0;
        ums::fiber keeper{[&] {
            const lodging here{1};
            for (int i = 0; i < 100; ++i) {
                here.through([] { ums::this_fiber::park(); });
                ++rounds;
            }
        }};
        const ums::fiber_ref it = keeper.ref();
        std::thread plain{[&, it] {
            const ums::keep_carrier nothing;
            const pid_t thread = gettid();
            for (int i = 0; i < 100; ++i) {
                it.unpark();
                while (rounds <= i) std::this_thread::yield();
            }
            ums::this_fiber::sleep_for(1us);
            EXPECT_EQ(gettid(), thread);
        }};
        keeper.join();
        ums::offload([&] { plain.join(); });
    });
}

TEST_F(keep_carrier_test, scopes_nest_and_begin_again) {
    ums::run({.processors = 1}, [] {
        for (int i = 0; i < scaled(200, 20); ++i) {
            const lodging here{1};
            here.through([] { ums::this_fiber::sleep_for(1us); });
            {
                const ums::keep_carrier again;
                const ums::keep_carrier and_again;
                here.through([] { ums::this_fiber::sleep_for(1us); });
            }
            here.through([] { ums::this_fiber::sleep_for(1us); });
        }
    });
}

// A yield with nothing else to run stays; with others it lets each of them run.
TEST_F(keep_carrier_test, it_yields_to_others_and_they_to_it) {
    ums::run({.processors = 1, .time_slice_us = 0}, [] {
        const lodging alone{1};
        for (int i = 0; i < 1000; ++i) alone.through([] { ums::this_fiber::yield(); });
        std::atomic<bool> over = false;
        std::array<std::atomic<long>, 3> ran{};
        std::vector<ums::fiber> others;
        for (auto& count : ran)
            others.emplace_back([&] {
                while (!over) {
                    ++count;
                    ums::this_fiber::yield();
                }
            });
        for (int i = 0; i < scaled(500, 50); ++i) alone.through([] { ums::this_fiber::yield(); });
        // One that is found blocked, perhaps at a page fault, comes later.
        for (const auto& count : ran)
            while (count <= 10) alone.through([] { ums::this_fiber::yield(); });
        over = true;
        for (auto& f : others) f.join();
    });
}

TEST_F(keep_carrier_test, errno_and_exceptions_in_flight_stay) {
    ums::run([] {
        ums::fiber disturbs{[] {
            for (int i = 0; i < 100; ++i) {
                EXPECT_EQ(::access("", F_OK), -1);
                try {
                    throw i;
                } catch (int n) {
                    ums::this_fiber::yield();
                    EXPECT_EQ(n, i);
                }
            }
        }};
        for (int i = 0; i < 20; ++i) {
            try {
                const lodging outside{1};
                throw std::runtime_error{"kept"};
            } catch (const std::runtime_error& e) {
                const lodging here{2};
                ums::set_last_error(EDOM);
                here.through([] { ums::this_fiber::sleep_for(10us); });
                EXPECT_EQ(ums::last_error(), EDOM);
                try {
                    throw 7;
                } catch (int seven) {
                    here.through([] { ums::this_fiber::yield(); });
                    EXPECT_EQ(seven, 7);
                }
                EXPECT_STREQ(e.what(), "kept");
                EXPECT_EQ(std::uncaught_exceptions(), 0);
            }
        }
        // And one that begins in a handler and ends after it.
        std::unique_ptr<lodging> longer;
        try {
            throw std::runtime_error{"began"};
        } catch (const std::runtime_error&) {
            longer = std::make_unique<lodging>(3);
            longer->through([] { ums::this_fiber::sleep_for(10us); });
        }
        longer->through([] { ums::this_fiber::sleep_for(10us); });
        longer.reset();
        disturbs.join();
    });
}

// The time slice stops it together with its kernel thread; a call that blocks takes the processor
// away.
TEST_F(keep_carrier_test, it_stays_when_it_is_stopped_and_when_it_blocks) {
    ums::run({.processors = 1, .time_slice_us = under_tsan || under_asan ? 0U : 1000U}, [] {
        std::atomic<bool> over = false;
        ums::fiber other{[&] {
            while (!over) ums::this_fiber::yield();
        }};
        {
            const lodging here{1};
            for (int i = 0; i < 5; ++i) {
                const auto until = std::chrono::steady_clock::now() + 3ms;
                while (std::chrono::steady_clock::now() < until) here.check();
                here.through([] { usleep(2000); });
                here.through([] { ums::this_fiber::yield(); });
                here.through([] { ums::blocking([] { usleep(2000); }); });
                ums::blocking([&] {
                    usleep(1000);
                    here.through([] { ums::this_fiber::yield(); });
                    usleep(1000);
                });
                here.check();
            }
        }
        over = true;
        other.join();
    });
}

// One that is kept at the end of a region, and one whose region began before it.
TEST_F(keep_carrier_test, marked_regions_begin_outside_and_end_outside) {
    ums::run({.processors = 1}, [] {
        for (int i = 0; i < 20; ++i)
            ums::blocking([] {
                usleep(200);
                const lodging here{1};
                here.through([] { ums::this_fiber::yield(); });
                here.through([] { usleep(200); });
                here.through([] { ums::this_fiber::sleep_for(1us); });
                here.through([] { ums::blocking([] { usleep(200); }); });
            });
    });
}

TEST_F(keep_carrier_test, it_is_joined_and_joins) {
    ums::run([] {
        for (int i = 0; i < scaled(100, 20); ++i) {
            ums::fiber kept{[] {
                const lodging here{1};
                ums::fiber child{[] {
                    const lodging its_own{2};
                    its_own.through([] { ums::this_fiber::yield(); });
                }};
                here.through([] { ums::this_fiber::yield(); });
                here.through([&] { child.join(); });
            }};
            const lodging here{3};
            here.through([&] { kept.join(); });
        }
    });
}

TEST_F(keep_carrier_test, a_pinned_fiber_and_one_of_another_cluster_stay) {
    ums::run([] {
        ums::cluster other{{.name = "other", .processors = 1}};
        ums::fiber there{{.cluster = &other}, [] {
                             const lodging here{1};
                             for (int i = 0; i < 50; ++i)
                                 here.through([] { ums::this_fiber::yield(); });
                             for (int i = 0; i < 50; ++i)
                                 here.through([] { ums::this_fiber::sleep_for(1us); });
                         }};
        ums::fiber pinned{{.pinned = true}, [] {
                              const lodging here{2};
                              for (int i = 0; i < 50; ++i)
                                  here.through([] { ums::this_fiber::yield(); });
                              for (int i = 0; i < 50; ++i)
                                  here.through([] { ums::this_fiber::sleep_for(1us); });
                          }};
        there.join();
        pinned.join();
    });
}

TEST_F(keep_carrier_test, migration_to_another_cluster_is_refused) {
    ::testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_DEATH(ums::run([] {
                     ums::cluster other{{.name = "other", .processors = 1}};
                     const ums::keep_carrier kept;
                     ums::this_fiber::migrate(other);
                 }),
                 "migrate\\(\\) was called inside ums::keep_carrier");
    // But not to where it is, nor to a processor of its cluster.
    ums::run({.processors = 2}, [] {
        auto& home = ums::cluster::standard();
        std::vector<ums::fiber> all;
        for (int i = 1; i <= 4; ++i)
            all.emplace_back(ums::fiber_options{.pinned = i % 2 == 0}, [&, i] {
                const lodging here{i};
                here.through([&] { ums::this_fiber::migrate(home); });
                for (unsigned k = 0; k < 20; ++k)
                    here.through([&] { ums::this_fiber::migrate(home, k % home.processors()); });
            });
        for (auto& f : all) f.join();
    });
}

TEST_F(keep_carrier_test, processors_come_and_go) {
    ums::run({.processors = 2}, [] {
        std::atomic<bool> over = false;
        std::vector<ums::fiber> keepers;
        for (int i = 1; i <= 6; ++i)
            keepers.emplace_back([&, i] {
                const lodging here{i};
                while (!over) {
                    here.through([] { ums::this_fiber::yield(); });
                    here.through([] { ums::this_fiber::sleep_for(10us); });
                }
            });
        auto& standard = ums::cluster::standard();
        for (int i = 0; i < scaled(20, 5); ++i) {
            standard.add_processor();
            ums::this_fiber::sleep_for(100us);
            standard.remove_processor();
            if (standard.processors() > 1) {
                standard.remove_processor();
                ums::this_fiber::sleep_for(100us);
                standard.add_processor();
            }
        }
        over = true;
        for (auto& f : keepers) f.join();
    });
}

// Each scope has a kernel thread from its beginning on, so the waits inside need none. One more is
// an error, and not a wait for a fiber that may wait for this one.
TEST_F(keep_carrier_test, past_the_bound_a_scope_is_refused_and_the_others_go_on) {
    // A fiber that is found blocked takes the place of a scope.
    if (std::getenv("UMS_BLOCK") != nullptr) GTEST_SKIP() << "a detector is asked for";
    ums::run({.processors = 1, .carriers = 4, .block = ums::block_detection::off}, [] {
        ums::counting_semaphore<> go{0}, done{0};
        std::vector<ums::fiber> keepers;
        const unsigned bound = std::max(4U, ums::cluster::standard().processors() + 1);
        const int n = static_cast<int>(bound - ums::cluster::standard().processors());
        for (int i = 1; i <= n; ++i)
            keepers.emplace_back([&, i] {
                const lodging here{i};
                done.release();
                here.through([&] { go.acquire(); });
                here.through([] { ums::blocking([] { usleep(100); }); });  // All of them at once.
                here.through([] { ums::this_fiber::yield(); });
            });
        for (int i = 0; i < n; ++i) done.acquire();
        try {
            const ums::keep_carrier one_too_many;
            FAIL() << "a scope began past the bound";
        } catch (const std::system_error& e) {
            EXPECT_EQ(e.code(), std::errc::resource_unavailable_try_again);
            EXPECT_NE(std::string{e.what()}.find("UMS_CARRIERS"), std::string::npos) << e.what();
        }
        go.release(n);
        for (auto& f : keepers) f.join();
        EXPECT_LE(ums::stats().carriers_peak, bound);
        const ums::keep_carrier free_again;
    });
}

TEST_F(keep_carrier_test, a_mutex_is_shared_by_kept_and_other_fibers) {
    ums::run([] {
        ums::mutex m;
        long sum = 0;
        const int rounds = scaled(500, 50);
        std::vector<ums::fiber> all;
        for (int i = 1; i <= 8; ++i)
            all.emplace_back([&, i] {
                const auto add = [&] {
                    const std::lock_guard guard{m};
                    const long seen = sum;
                    if (seen % 16 == i) ums::this_fiber::yield();
                    sum = seen + 1;
                };
                if (i % 2 != 0) {
                    const lodging here{i};
                    for (int r = 0; r < rounds; ++r) here.through(add);
                } else {
                    for (int r = 0; r < rounds; ++r) add();
                }
            });
        for (auto& f : all) f.join();
        EXPECT_EQ(sum, 8L * rounds);
    });
}

TEST_F(keep_carrier_test, fibers_at_random_lose_nothing) {
    ums::run({.processors = 2}, [] {
        constexpr int fibers = 24;
        const int rounds = scaled(300, 40);
        const auto seed = test_seed();
        std::atomic<int> ended = 0;
        std::vector<ums::fiber> all(fibers);
        std::vector<ums::fiber_ref> refs;
        ums::channel<int> through{4};
        ums::latch made{fibers + 1};
        ums::latch over{fibers + 1};  // Until then each may be unparked, so none is joined.
        const auto act = [&](std::mt19937_64& random, const lodging* here) {
            switch (random() % 10) {
                case 0:
                    ums::this_fiber::sleep_for(std::chrono::microseconds{random() % 50});
                    break;
                case 1:
                    refs[random() % fibers].unpark();
                    break;
                case 2:
                    static_cast<void>(ums::this_fiber::park_until(
                        ums::deadline_after(std::chrono::microseconds{random() % 100})));
                    break;
                case 3:
                    static_cast<void>(through.try_send(1));
                    break;
                case 4:
                    static_cast<void>(through.try_receive());
                    break;
                case 5:
                    ums::fiber{[] { ums::this_fiber::yield(); }}.join();
                    break;
                case 6:
                    ums::blocking([&] { usleep(static_cast<unsigned>(random() % 50)); });
                    break;
                case 7:
                    usleep(static_cast<unsigned>(random() % 50));
                    break;
                case 8:
                    ums::fiber{{.launch = ums::launch::dispatch},
                               [] {
                                   const lodging its_own{1000};
                                   its_own.through([] { ums::this_fiber::yield(); });
                               }}
                        .join();
                    break;
                default:
                    ums::this_fiber::yield();
            }
            if (here != nullptr) here->check();
        };
        for (int i = 0; i < fibers; ++i)
            all[static_cast<std::size_t>(i)] = ums::fiber{[&, i] {
                made.arrive_and_wait();
                std::mt19937_64 random{seed + static_cast<unsigned>(i)};
                for (int r = 0; r < rounds; r += 10) {
                    if (random() % 2 == 0) {
                        const lodging here{i + 1};
                        for (int k = 0; k < 10; ++k) act(random, &here);
                    } else {
                        for (int k = 0; k < 10; ++k) act(random, nullptr);
                    }
                }
                ++ended;
                over.arrive_and_wait();
            }};
        for (const auto& f : all) refs.push_back(f.ref());
        made.arrive_and_wait();
        over.arrive_and_wait();
        for (auto& f : all) f.join();
        EXPECT_EQ(ended, fibers);
    });
}

// Thousands of waits of a fiber that keeps its thread, which two others wake.
TEST_F(keep_carrier_test, thousands_of_waits) {
    ums::run([] {
        const int rounds = by_variant(scaled(20'000, 1'000), scaled(4'000, 1'000));
        ums::counting_semaphore<> there{0}, back{0};
        ums::fiber keeper{[&] {
            const lodging here{1};
            for (int i = 0; i < rounds; ++i) {
                here.through([&] { there.acquire(); });
                back.release();
            }
        }};
        for (int i = 0; i < rounds; ++i) {
            there.release();
            back.acquire();
        }
        keeper.join();
        EXPECT_LE(ums::stats().carriers_made, ums::cluster::standard().processors() + 8)
            << "a wait makes no kernel thread";
    });
}

}  // namespace
