// SPDX-License-Identifier: MIT
// variants: p1 nomembarrier migrate priority

// cluster::pause(): nothing of the cluster runs until resume().

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "support/conservation.hpp"
#include "support/error_of.hpp"
#include "support/one_processor.hpp"
#include "support/plain_thread.hpp"
#include "support/scale.hpp"
#include "ums/blocking.hpp"
#include "ums/cluster.hpp"
#include "ums/fiber.hpp"
#include "ums/keep_carrier.hpp"
#include "ums/mutex.hpp"
#include "ums/run.hpp"
#include "ums/semaphore.hpp"
#include "ums/stats.hpp"
#include "ums/this_fiber.hpp"

namespace {

using namespace std::chrono_literals;
namespace this_fiber = ums::this_fiber;

class pause_test : public conserving_test {};

// Fibers of a cluster that all count as fast as they can, each in a way of its own.
class counters {
public:
    explicit counters(ums::cluster& where) : where_{where} {
        keep(yields, [] { this_fiber::yield(); });
        keep(locks, [this] {
            const std::lock_guard hold{lock_};
            this_fiber::yield();
        });
        keep(locks, [this] {
            const std::lock_guard hold{lock_};
            this_fiber::yield();
        });
        keep(spawns, [] { ums::fiber{[] {}}.join(); });
        keep(sleeps, [] { this_fiber::sleep_for(20us); });
        keep(parks, [this] {
            go_.release();
            come_.acquire();
        });
        keep(parks, [this] {
            go_.acquire();
            come_.release();
        });
    }
    ~counters() {
        ends_ = true;
        go_.release(2);
        come_.release(2);
        for (ums::fiber& f : all_) f.join();
    }
    counters(const counters&) = delete;
    counters& operator=(const counters&) = delete;

    enum kind { yields, locks, spawns, sleeps, parks, kinds };

    [[nodiscard]] std::array<long, kinds> now() const {
        std::array<long, kinds> seen;
        for (int k = 0; k < kinds; ++k) seen[k] = counts_[k].load();
        return seen;
    }

private:
    template <class F>
    void keep(kind k, F f) {
        all_.emplace_back(ums::fiber_options{.cluster = &where_}, [this, k, f] {
            while (!ends_) {
                f();
                counts_[k].fetch_add(1);
            }
        });
    }

    ums::cluster& where_;
    std::atomic<bool> ends_ = false;
    std::array<std::atomic<long>, kinds> counts_{};
    ums::mutex lock_;
    ums::counting_semaphore<> go_{0}, come_{0};
    std::vector<ums::fiber> all_;
};

// Looks at the counters for a while: `what` runs meanwhile.
template <class F>
void expect_still(const counters& c, F what) {
    const auto before = c.now();
    what();
    ASSERT_EQ(c.now(), before);
}

TEST_F(pause_test, ten_thousand_pauses_under_load_from_another_cluster) {
    ums::run([] {
        ums::cluster busy{{.name = "busy", .processors = 2}};
        counters load{busy};
        const int pauses = sized("UMS_TEST_PAUSES", 10'000, 300);
        const auto at_first = load.now();
        for (int i = 0; i < pauses; ++i) {
            busy.pause();
            expect_still(load, [&] {
                for (int n = 0; n < 20; ++n) this_fiber::yield();
                if (i % 1000 == 0) this_fiber::sleep_for(2ms);
            });
            busy.resume();
            this_fiber::yield();
        }
        // Each goes on: none was lost.
        const auto paused_last = load.now();
        for (int k = 0; k < counters::kinds; ++k)
            while (load.now()[k] == paused_last[k]) this_fiber::yield();
        for (int k = 0; k < counters::kinds; ++k) EXPECT_GT(load.now()[k], at_first[k]);
    });
}

TEST_F(pause_test, by_a_plain_thread) {
    ums::run([] {
        ums::cluster& here = ums::cluster::standard();
        auto load = std::make_unique<counters>(here);
        plain_thread{[&] {
            for (int i = 0; i < scaled(1000, 50); ++i) {
                here.pause();
                expect_still(*load, [&] {
                    if (i % 100 == 0) std::this_thread::sleep_for(2ms);
                });
                here.resume();
            }
        }}.join();
    });
}

TEST_F(pause_test, by_several_at_once) {
    ums::run({.processors = 2}, [] {
        ums::cluster busy{{.name = "busy", .processors = 2}};
        counters load{busy};
        std::vector<ums::fiber> pausers;
        for (int k = 0; k < 4; ++k)
            pausers.emplace_back([&] {
                for (int i = 0; i < scaled(500, 25); ++i) {
                    busy.pause();
                    busy.pause();
                    const auto before = load.now();
                    this_fiber::yield();
                    busy.resume();
                    this_fiber::yield();
                    ASSERT_EQ(load.now(), before);  // Still paused once.
                    busy.resume();
                }
            });
        for (ums::fiber& f : pausers) f.join();
    });
}

TEST_F(pause_test, a_fiber_that_computes_is_stopped) {
    if (never_stops) GTEST_SKIP() << "nothing is stopped under a sanitizer";
    ums::run([] {
        ums::cluster busy{{.name = "busy", .processors = 2}};
        std::atomic<bool> ends = false;
        std::atomic<long> count = 0;
        std::vector<ums::fiber> spinning;
        for (int i = 0; i < 2; ++i)
            spinning.emplace_back(ums::fiber_options{.cluster = &busy}, [&] {
                while (!ends) count.fetch_add(1);
            });
        while (count == 0) this_fiber::yield();
        for (int i = 0; i < 100; ++i) {
            busy.pause();
            const long before = count;
            this_fiber::sleep_for(
                i == 0 ? 50ms : 100us);  // Longer than a stopped fiber waits without a pause.
            ASSERT_EQ(count, before);
            auto allocates = std::make_unique<std::vector<int>>(100'000);
            ASSERT_EQ(allocates->back(), 0);
            busy.resume();
            while (count == before) this_fiber::yield();
        }
        ends = true;
        for (ums::fiber& f : spinning) f.join();
    });
}

TEST_F(pause_test, a_loop_of_uninterruptible_sections_is_stopped_between_two) {
    if (never_stops) GTEST_SKIP() << "nothing is stopped under a sanitizer";
    ums::run([] {
        ums::cluster other{{.name = "other", .processors = 1}};
        std::atomic<bool> ends = false;
        std::atomic<long> begun = 0, ended = 0;
        ums::fiber sections{{.cluster = &other}, [&] {
                                while (!ends) {
                                    ums::uninterruptible([&] {
                                        ++begun;
                                        const auto until = std::chrono::steady_clock::now() + 300us;
                                        while (std::chrono::steady_clock::now() < until) {
                                        }
                                        ++ended;
                                    });
                                }
                            }};
        while (begun == 0) this_fiber::yield();
        for (int i = 0; i < 20; ++i) {
            other.pause();
            const long before = begun;
            EXPECT_EQ(ended, before) << "paused within a section";
            this_fiber::sleep_for(1ms);
            EXPECT_EQ(begun, before);
            other.resume();
            while (begun == before) this_fiber::yield();
        }
        ends = true;
        sections.join();
    });
}

TEST_F(pause_test, what_becomes_ready_meanwhile_runs_after_it) {
    ums::run([] {
        ums::cluster other{{.name = "other", .processors = 2}};
        ums::counting_semaphore<> wake{0};
        std::atomic<int> ran = 0;
        ums::fiber waits{{.cluster = &other}, [&] {
                             wake.acquire();
                             ++ran;
                         }};
        ums::fiber sleeps{{.cluster = &other}, [&] {
                              this_fiber::sleep_for(2ms);
                              ++ran;
                          }};
        other.pause();
        const int before = ran;
        wake.release();
        ums::fiber made{{.cluster = &other}, [&] { ++ran; }};
        ums::fiber comes{[&] {
            this_fiber::migrate(other);
            ++ran;
        }};
        this_fiber::sleep_for(5ms);
        EXPECT_EQ(ran, before);
        other.resume();
        for (ums::fiber* f : {&waits, &sleeps, &made, &comes}) f->join();
        EXPECT_EQ(ran, 4);
    });
}

TEST_F(pause_test, processors_come_and_go_while_it_is_paused) {
    ums::run([] {
        ums::cluster other{{.name = "other", .processors = 2}};
        counters load{other};
        for (int i = 0; i < scaled(100, 10); ++i) {
            other.pause();
            expect_still(load, [&] {
                other.add_processor();
                other.remove_processor();
                other.remove_processor();
                other.add_processor();
            });
            other.resume();
        }
    });
}

// Without a detector no signal stops it: its yield has to notice the pause.
TEST_F(pause_test, a_fiber_that_keeps_its_kernel_thread_and_only_yields_comes_to_rest) {
    ums::run(one_processor, [] {
        ums::cluster other;
        std::atomic<bool> ends = false;
        std::atomic<long> count = 0;
        ums::fiber yields{{.cluster = &other}, [&] {
                              const ums::keep_carrier kept;
                              while (!ends) {
                                  ++count;
                                  this_fiber::yield();
                              }
                          }};
        while (count == 0) this_fiber::yield();
        for (int i = 0; i < scaled(100, 10); ++i) {
            other.pause();
            const long before = count;
            for (int n = 0; n < 20; ++n) this_fiber::yield();
            EXPECT_EQ(count, before);
            other.resume();
            while (count == before) this_fiber::yield();
        }
        ends = true;
        yields.join();
    });
}

TEST_F(pause_test, an_idle_cluster_is_paused_and_ends) {
    ums::run([] {
        ums::cluster idle{{.processors = 2}};
        idle.pause();
        idle.pause();
        idle.resume();
        idle.resume();
        ums::fiber{{.cluster = &idle}, [] {}}.join();
        idle.pause();  // Its end does not wait: no fiber is left.
    });
}

TEST_F(pause_test, a_fiber_cannot_pause_its_own_cluster) {
    ums::run([] {
        EXPECT_EQ(error_of([] { ums::cluster::standard().pause(); }),
                  std::errc::resource_deadlock_would_occur);
        EXPECT_EQ(error_of([] { ums::cluster::standard().resume(); }),
                  std::errc::operation_not_permitted);
    });
}

TEST_F(pause_test, a_call_that_is_blocked_in_the_kernel_does_not_keep_it_waiting) {
    ums::run([] {
        ums::cluster other{{.name = "other", .processors = 1}};
        int ends[2];
        ASSERT_EQ(::pipe(ends), 0);
        std::atomic<bool> is_there = false, is_back = false;
        ums::fiber reads{{.cluster = &other}, [&] {
                             char c;
                             is_there = true;
                             ums::blocking([&] { return ::read(ends[0], &c, 1); });
                             is_back = true;
                         }};
        while (!is_there) this_fiber::yield();
        other.pause();
        EXPECT_EQ(::write(ends[1], "x", 1), 1);
        this_fiber::sleep_for(2ms);
        EXPECT_FALSE(is_back);  // It needs a processor to go on.
        other.resume();
        reads.join();
        ::close(ends[0]);
        ::close(ends[1]);
    });
}

// Its processor was handed on while it was blocked, without a mark. After the call the fiber runs
// for a moment, until it next uses the library.
TEST_F(pause_test, a_fiber_whose_processor_was_handed_off_waits_after_its_call) {
    ums::run([] {
        ums::cluster other{{.name = "other", .processors = 1}};
        int ends[2];
        ASSERT_EQ(::pipe(ends), 0);
        const auto before = ums::stats().blocked_in_calls;
        std::atomic<bool> is_called = false, is_back = false;
        ums::fiber reads{{.cluster = &other}, [&] {
                             char c;
                             EXPECT_EQ(::read(ends[0], &c, 1), 1);
                             is_called = true;
                             this_fiber::yield();
                             is_back = true;
                         }};
        while (ums::stats().blocked_in_calls == before) this_fiber::yield();
        other.pause();
        EXPECT_EQ(::write(ends[1], "x", 1), 1);
        for (int i = 0; i < 100; ++i) this_fiber::sleep_for(100us);
        EXPECT_FALSE(is_back);
        other.resume();
        reads.join();
        EXPECT_TRUE(is_called && is_back);
        ::close(ends[0]);
        ::close(ends[1]);
    });
}

TEST_F(pause_test, two_clusters_are_paused_at_once_and_in_any_order) {
    ums::run([] {
        ums::cluster a{{.name = "a", .processors = 2}}, b{{.name = "b", .processors = 1}};
        counters of_a{a}, of_b{b};
        for (int i = 0; i < scaled(200, 20); ++i) {
            a.pause();
            b.pause();
            expect_still(of_a, [&] {
                expect_still(of_b, [] { this_fiber::yield(); });
                b.resume();
                this_fiber::yield();
            });
            a.resume();
        }
    });
}

TEST_F(pause_test, a_processor_is_moved_out_of_a_paused_cluster) {
    ums::run([] {
        ums::cluster paused{{.name = "from", .processors = 2}},
            runs{{.name = "to", .processors = 1}};
        counters load{paused};
        paused.pause();
        expect_still(load, [&] {
            EXPECT_EQ(paused.move_processor(runs), 1U);
            ums::fiber{{.cluster = &runs}, [] { this_fiber::yield(); }}.join();
        });
        EXPECT_EQ(runs.move_processor(paused), 1U);
        paused.resume();
    });
}

// run() returns once the last fiber has ended, so not before the cluster is resumed.
TEST_F(pause_test, the_end_of_a_runtime_waits_for_the_resumption) {
    for (int i = 0; i < scaled(100, 10); ++i) {
        std::atomic<bool> ran = false, is_resumed = false;
        ums::counting_semaphore<> wake{0};
        std::thread pauser;
        ums::run({.processors = 2}, [&] {
            pauser = std::thread{[&, &here = ums::cluster::standard()] {
                here.pause();
                wake.release();
                std::this_thread::yield();
                EXPECT_FALSE(ran);
                is_resumed = true;
                here.resume();
            }};
            ums::fiber{[&] {
                wake.acquire();
                EXPECT_TRUE(is_resumed);
                ran = true;
            }}.detach();
        });
        EXPECT_TRUE(ran && is_resumed);
        pauser.join();
    }
}

TEST_F(pause_test, the_end_of_a_cluster_waits_for_the_resumption) {
    ums::run({.processors = 2}, [] {
        for (int i = 0; i < scaled(100, 10); ++i) {
            std::atomic<bool> is_resumed = false;
            ums::counting_semaphore<> wake{0};
            auto other = std::make_unique<ums::cluster>(ums::cluster_options{.processors = 2});
            ums::fiber{{.cluster = other.get()},
                       [&] {
                           wake.acquire();
                           EXPECT_TRUE(is_resumed);
                       }}
                .detach();
            other->pause();
            wake.release();
            ums::fiber resumes{[&is_resumed, there = other.get()] {
                this_fiber::yield();
                is_resumed = true;
                there->resume();
            }};
            other.reset();
            EXPECT_TRUE(is_resumed);
            resumes.join();
        }
    });
}

}  // namespace
