// SPDX-License-Identifier: MIT
// variants: p1 mprotect
#include "ums/metrics.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "arch/sanitizer.hpp"
#include "sched/record/trace.hpp"
#include "sched/run/here.hpp"
#include "support/conservation.hpp"
#include "support/scale.hpp"
#include "ums/ums.hpp"

namespace {

using namespace ums;
using namespace std::chrono_literals;

// The value of a sample, or -1.
double value(const std::string& all, const std::string& sample) {
    const std::size_t at = all.find("\n" + sample + " ");
    return at == all.npos ? -1 : std::strtod(all.c_str() + at + sample.size() + 2, nullptr);
}

// How much a sample has grown.
double growth(const std::string& before, const std::string& after, const std::string& sample) {
    EXPECT_GE(value(before, sample), 0) << sample;
    return value(after, sample) - value(before, sample);
}

// Records until the end of the scope.
struct recorded {
    recorded() { sched::tracing.wanted.store(1, base::relaxed); }
    ~recorded() { sched::tracing.wanted.store(0, base::relaxed); }
};

class metrics_test : public conserving_test {};
// Rings stay mapped, so these tests do not check what is left.
class recorded_metrics_test : public testing::Test {
    const recorded now_;
};

TEST_F(metrics_test, without_a_runtime_counters_are_zero_and_there_are_no_fibers) {
    const std::string all = metrics();
    EXPECT_EQ(value(all, "ums_fibers_spawned_total"), 0);
    EXPECT_EQ(value(all, "ums_fibers"), 0);
    EXPECT_TRUE(all.ends_with("\n# EOF\n"));
    EXPECT_TRUE(fibers().empty());
}

TEST_F(metrics_test, what_a_program_does_is_counted) {
    run({.processors = 2}, [] {
        for (int i = 0; i < 100; ++i) fiber{[] { this_fiber::yield(); }}.join();
        while (stats().finished < 100) this_fiber::yield();  // A join may return before that.
        const std::string all = metrics();
        EXPECT_EQ(value(all, "ums_fibers_spawned_total"), 101);
        EXPECT_EQ(value(all, "ums_fibers_finished_total"), 100);
        EXPECT_EQ(value(all, "ums_fibers"), 1);
        EXPECT_EQ(value(all, "ums_recording"), 0);
        EXPECT_EQ(value(all, "ums_stacks"), static_cast<double>(stats().stacks_made));
        EXPECT_GE(value(all, "ums_switches_total{processor=\"0\"}"), 0);
        // For a checker of the format (tests/inspect/metrics_test.py).
        if (const char* const file = std::getenv("UMS_TEST_METRICS_FILE"))
            std::ofstream{file} << all;
    });
}

TEST_F(metrics_test, switches_of_past_slices_are_counted) {
    run({.processors = 1}, [] {
        const std::string before = metrics();
        for (int i = 0; i < 10'000; ++i) fiber{[] {}}.join();
        const double n = growth(before, metrics(), "ums_switches_total{processor=\"0\"}");
        // Each fiber means a switch to it and one back.
        EXPECT_GE(n, 2 * 10'000 - 2 * 61);
        EXPECT_LE(n, 2 * 10'000 + 2 * 61);
    });
}

TEST_F(metrics_test, hand_offs_are_counted_with_their_latency) {
    run({.processors = 1}, [] {
        const std::string before = metrics();
        std::atomic<bool> is_back = false;
        fiber blocks{[&] {
            ::usleep(50'000);
            is_back = true;
        }};
        fiber others{[&] {
            while (!is_back) this_fiber::yield();
        }};
        blocks.join();
        others.join();
        if (stats().hand_offs == 0) GTEST_SKIP() << "nothing looks for blocks here";
        const std::string after = metrics();
        const double found = growth(before, after, "ums_blocks_total{cause=\"call\"}") +
                             growth(before, after, "ums_blocks_total{cause=\"fault\"}");
        EXPECT_GE(growth(before, after, "ums_hand_offs_total"), 1);
        EXPECT_GE(found, 1);
        EXPECT_EQ(growth(before, after, "ums_hand_off_latency_seconds_count"), found);
        EXPECT_EQ(growth(before, after, "ums_hand_off_latency_seconds_bucket{le=\"+Inf\"}"), found);
        EXPECT_GT(growth(before, after, "ums_hand_off_latency_seconds_sum"), 0);
    });
}

TEST_F(recorded_metrics_test, each_wake_up_is_one_time_from_wake_to_run) {
    run({.processors = 1, .block = block_detection::off}, [] {
        counting_semaphore<> ready{0}, back{0};
        fiber other{[&] {
            for (int i = 0; i < 100; ++i) {
                ready.acquire();
                back.release();
            }
        }};
        this_fiber::yield();  // Until the fiber waits.
        const std::string before = metrics();
        for (int i = 0; i < 100; ++i) {
            ready.release();
            back.acquire();
        }
        const std::string after = metrics();
        EXPECT_EQ(value(after, "ums_recording"), 1);
        EXPECT_EQ(growth(before, after, "ums_wake_to_run_seconds_count"), 200);
        EXPECT_EQ(growth(before, after, "ums_run_queue_latency_seconds_count"), 200);
        EXPECT_GT(growth(before, after, "ums_wake_to_run_seconds_sum"), 0);
        EXPECT_EQ(growth(before, after, "ums_trace_missed_total"), 0);
        EXPECT_EQ(growth(before, after, "ums_lock_wait_seconds_count"), 0);
        other.join();
        if (const char* const file = std::getenv("UMS_TEST_METRICS_TRACED_FILE"))
            std::ofstream{file} << after;
    });
}

TEST_F(recorded_metrics_test, a_yield_waits_in_the_queue_and_is_no_wake_up) {
    run({.processors = 1, .block = block_detection::off}, [] {
        bool is_done = false;
        fiber other{[&] {
            while (!is_done) this_fiber::yield();
        }};
        this_fiber::yield();
        const std::string before = metrics();
        for (int i = 0; i < 1'000; ++i) this_fiber::yield();
        const std::string after = metrics();
        EXPECT_EQ(growth(before, after, "ums_run_queue_latency_seconds_count"), 2'000);
        EXPECT_EQ(growth(before, after, "ums_wake_to_run_seconds_count"), 0);
        is_done = true;
        other.join();
    });
}

TEST_F(recorded_metrics_test, a_wait_for_a_mutex_is_measured) {
    run({.processors = 1, .block = block_detection::off}, [] {
        mutex lock;
        const std::string before = metrics();
        lock.lock();
        const auto begin = std::chrono::steady_clock::now();
        fiber waiter{[&] { const std::lock_guard guard{lock}; }};
        this_fiber::yield();  // Until the fiber waits.
        this_fiber::sleep_for(2ms);
        lock.unlock();
        waiter.join();
        const std::string after = metrics();
        const std::chrono::duration<double> all = std::chrono::steady_clock::now() - begin;
        EXPECT_EQ(growth(before, after, "ums_lock_wait_seconds_count"), 1);
        EXPECT_GE(growth(before, after, "ums_lock_wait_seconds_sum"), 0.0015);
        EXPECT_LE(growth(before, after, "ums_lock_wait_seconds_sum"), all.count() * 1.5);
    });
}

TEST_F(recorded_metrics_test, more_records_than_are_read_at_once_are_counted_as_missed) {
    run({.processors = 1, .block = block_detection::off}, [] {
        bool is_done = false;
        fiber other{[&] {
            while (!is_done) this_fiber::yield();
        }};
        this_fiber::yield();
        const std::string before = metrics();
        for (int i = 0; i < 100'000; ++i) this_fiber::yield();
        const std::string after = metrics();
        EXPECT_LE(growth(before, after, "ums_trace_records_total"), 65'536 + 1);
        EXPECT_GE(growth(before, after, "ums_trace_records_total") +
                      growth(before, after, "ums_trace_missed_total"),
                  200'000);
        is_done = true;
        other.join();
    });
}

TEST_F(recorded_metrics_test, it_may_be_asked_for_by_several_at_once) {
    run({.processors = 2}, [] {
        std::vector<fiber> all;
        for (int i = 0; i < 4; ++i)
            all.emplace_back([] {
                double last = 0;
                for (int k = 0; k < scaled(100, 10); ++k) {
                    const std::string text = metrics();
                    const double n = value(text, "ums_wake_to_run_seconds_count");
                    EXPECT_GE(n, last);
                    EXPECT_EQ(n, value(text, "ums_wake_to_run_seconds_bucket{le=\"+Inf\"}"));
                    last = n;
                    this_fiber::sleep_for(10us);
                }
            });
        std::thread plain{[] {
            for (int k = 0; k < 10; ++k) EXPECT_TRUE(metrics().ends_with("# EOF\n"));
        }};
        for (fiber& f : all) f.join();
        plain.join();
    });
}

// The fibers by name.
std::map<std::string, fiber_info> named() {
    std::map<std::string, fiber_info> all;
    for (fiber_info& f : fibers()) {
        EXPECT_NE(f.id, fiber_id{});
        if (f.name.empty()) continue;
        EXPECT_TRUE(all.emplace(f.name, f).second) << f.name;
    }
    return all;
}

TEST_F(metrics_test, each_fiber_is_listed_with_what_it_waits_for) {
    run({.processors = 2}, [] {
        mutex lock;
        counting_semaphore<> never{0};
        channel<int> numbers;
        int pipe_ends[2];
        ASSERT_EQ(::pipe(pipe_ends), 0);
        lock.lock();
        std::vector<fiber> all;
        const auto add = [&](const char* name, auto f) {
            all.emplace_back(fiber_options{.name = name}, f);
        };
        add("mutex", [&] { const std::lock_guard guard{lock}; });
        add("semaphore", [&] { never.acquire(); });
        add("receive", [&] { static_cast<void>(numbers.receive()); });
        add("read", [&] { static_cast<void>(io::wait_readable(pipe_ends[0])); });
        add("park", [] { this_fiber::park(); });
        std::atomic<bool> is_over = false;
        add("sleep", [&] {
            while (!is_over) this_fiber::sleep_for(50ms);
        });
        std::vector<fiber> joiners;
        joiners.emplace_back(fiber_options{.name = "join"}, [&] { all[1].join(); });
        fiber done{{.name = "done"}, [] {}};
        const std::set<std::string> names{"mutex", "semaphore", "receive", "read",
                                          "park",  "sleep",     "join",    "done"};
        auto seen = named();
        const auto is_settled = [&] {
            return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
                return seen.at(name).state != fiber_state::active;
            });
        };
        for (; !is_settled(); seen = named()) this_fiber::yield();
        for (const std::string& name : names) {
            const fiber_info& f = seen.at(name);
            EXPECT_EQ(f.made_by, this_fiber::get_id());
            EXPECT_NE(f.spawned_at, nullptr);
            EXPECT_EQ(f.state, name == "done" ? fiber_state::ended : fiber_state::waiting) << name;
            EXPECT_EQ(f.waits_for, name == "done" ? "" : name);
        }
        EXPECT_EQ(seen.at("mutex").waits_in, reinterpret_cast<std::uintptr_t>(&lock));
        EXPECT_EQ(seen.at("semaphore").waits_in, reinterpret_cast<std::uintptr_t>(&never));
        EXPECT_EQ(seen.at("read").waits_in, static_cast<std::uint64_t>(pipe_ends[0]));
        EXPECT_EQ(seen.at("join").waits_in, seen.at("semaphore").id.value());
        EXPECT_EQ(seen.at("main").state, fiber_state::active);
        EXPECT_EQ(seen.at("main").id, this_fiber::get_id());

        lock.unlock();
        never.release();
        numbers.close();
        ::close(pipe_ends[1]);
        all[4].ref().unpark();
        is_over = true;
        for (std::size_t i : {0, 2, 3, 4, 5}) all[i].join();
        joiners[0].join();
        done.join();
        ::close(pipe_ends[0]);
    });
}

TEST_F(metrics_test, names_are_whole_and_no_fiber_is_listed_twice) {
    run({.processors = 2}, [] {
        counting_semaphore<> never{0};
        std::vector<fiber> some;
        const auto name_of = [](int i) {
            return std::string(static_cast<std::size_t>(i), 'x') + std::to_string(i);
        };
        for (int i = 0; i < 300; ++i)
            some.emplace_back(fiber_options{.name = name_of(i)}, [&] { never.acquire(); });
        const std::vector<fiber_info> all = fibers();
        EXPECT_EQ(all.size(), 301u);
        std::set<std::uint64_t> ids;
        for (const fiber_info& f : all) EXPECT_TRUE(ids.insert(f.id.value()).second);
        for (int i = 0; i < 300; ++i) {
            const std::string name = name_of(i).substr(0, 256);
            EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const fiber_info& f) {
                return f.name == name;
            })) << i;
        }
        never.release(300);
        for (fiber& f : some) f.join();
    });
}

// What a name lay in may be another fiber's frame by now, with what the sanitizer says of it.
TEST_F(metrics_test, a_name_is_read_from_a_stack_that_belongs_to_another_by_now) {
    run([] {
        const char* const name = sched::here{}.self->name;
        ASSERT_EQ(this_fiber::name(), "main");
        arch::poison(name, 5);
        const std::vector<fiber_info> all = fibers();
        arch::unpoison(name, 5);
        ASSERT_EQ(all.size(), 1u);
        EXPECT_EQ(all[0].name, "main");
    });
}

TEST_F(metrics_test, the_list_is_right_while_fibers_come_and_go) {
    run({.processors = 2}, [] {
        std::atomic<bool> is_done = false;
        std::vector<fiber> makers;
        for (int i = 0; i < 4; ++i)
            makers.emplace_back(fiber_options{.name = "maker"}, [&] {
                while (!is_done) {
                    std::vector<fiber> some;
                    for (int k = 0; k < 20; ++k)
                        some.emplace_back(fiber_options{.name = "short-lived"},
                                          [] { this_fiber::yield(); });
                    for (fiber& f : some) f.join();
                }
            });
        for (int i = 0; i < scaled(2'000, 100); ++i) {
            std::size_t lasting = 0;
            std::set<std::uint64_t> ids;
            for (const fiber_info& f : fibers()) {
                ASSERT_TRUE(ids.insert(f.id.value()).second);
                ASSERT_TRUE(f.name == "maker" || f.name == "main" || f.name == "short-lived")
                    << f.name;
                if (f.name != "short-lived") ++lasting;
            }
            ASSERT_EQ(lasting, 5u);
            this_fiber::yield();
        }
        is_done = true;
        for (fiber& f : makers) f.join();
    });
}

}  // namespace
