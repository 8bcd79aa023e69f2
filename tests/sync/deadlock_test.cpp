// SPDX-License-Identifier: MIT
// variants: migrate fifo p1 nomembarrier nosync deadlock
#include "ums/deadlock.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <shared_mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include <gtest/gtest.h>

#include "support/child.hpp"
#include "support/conservation.hpp"
#include "support/debug_words.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"
#include "ums/cluster.hpp"
#include "ums/fiber.hpp"
#include "ums/keep_carrier.hpp"
#include "ums/mutex.hpp"
#include "ums/run.hpp"
#include "ums/shared_mutex.hpp"
#include "ums/this_fiber.hpp"

namespace {

using namespace std::chrono_literals;
using ums::fiber;
namespace this_fiber = ums::this_fiber;

class deadlock_test : public conserving_test {};

// --- Children, because a fiber in a deadlock can end only with its process ---

#define CHECK(condition, ...)                                                    \
    do {                                                                         \
        if (!(condition)) {                                                      \
            std::fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition); \
            std::fprintf(stderr, __VA_ARGS__);                                   \
            std::fputc('\n', stderr);                                            \
            ::_exit(1);                                                          \
        }                                                                        \
    } while (false)

// Any of the mutex types, in one type.
struct any_mutex {
    explicit any_mutex(unsigned kind) noexcept : kind_{kind % 6} {}
    void lock() {
        switch (kind_) {
            case 0:
                barging_.lock();
                break;
            case 1:
                fair_.lock();
                break;
            case 2:
                recursive_.lock();
                break;
            case 3:
                timed_.lock();
                break;
            default:
                shared_.lock();
                break;
        }
    }
    void unlock() {
        switch (kind_) {
            case 0:
                barging_.unlock();
                break;
            case 1:
                fair_.unlock();
                break;
            case 2:
                recursive_.unlock();
                break;
            case 3:
                timed_.unlock();
                break;
            default:
                shared_.unlock();
                break;
        }
    }
    // Like lock(), or as a reader.
    void want() { kind_ == 5 ? shared_.lock_shared() : lock(); }
    bool holds(const void* address) const noexcept { return address >= this && address < this + 1; }

private:
    const unsigned kind_;
    ums::mutex barging_;
    ums::fair_mutex fair_;
    ums::recursive_mutex recursive_;
    ums::timed_mutex timed_;
    ums::shared_mutex shared_;
};

struct ring {
    std::string name;
    std::vector<std::unique_ptr<any_mutex>> mutexes;
    std::vector<const void*> calls;
    std::atomic<unsigned> ready = 0;
    unsigned thread = ~0u;  // Which member is a plain thread, if any.

    std::string member(std::size_t i) const {
        return name + "." + std::to_string(i % mutexes.size());
    }
};

[[gnu::noinline]] void take_part(ring& r, unsigned i) {
    r.calls[i] = __builtin_return_address(0);
    const auto n = static_cast<unsigned>(r.mutexes.size());
    std::optional<ums::keep_carrier> kept;  // One in four waits with its kernel thread.
    if (i % 4 == 1) kept.emplace();
    r.mutexes[i]->lock();
    ++r.ready;
    while (r.ready < n) this_fiber::yield();
    r.mutexes[(i + 1) % n]->want();
    CHECK(false, "%s: a deadlock went on", r.member(i).c_str());
}

[[gnu::noinline]] void member_main(ring& r, unsigned i) {
    take_part(r, i);
    ++r.ready;  // No tail call.
}

void check(const ring& r, const ums::deadlock_cycle& found) {
    const std::size_t n = r.mutexes.size();
    CHECK(found.members.size() == n, "%s: %zu", r.name.c_str(), found.members.size());
    std::size_t first = 0;
    const std::string& name = found.members[0].name;
    CHECK(!name.empty(), "%s", r.name.c_str());
    while (r.member(first) != name) CHECK(++first < n, "%s", name.c_str());
    const std::string text = to_string(found);
    for (std::size_t k = 0; k < n; ++k) {
        const std::size_t i = (first + k) % n;
        const ums::deadlock_member& m = found.members[k];
        CHECK(r.mutexes[(i + 1) % n]->holds(m.mutex), "%s", text.c_str());
        if (i == r.thread) {
            CHECK(m.thread != 0 && m.fiber == ums::fiber_id{} && m.stack.empty(), "%s",
                  text.c_str());
            continue;
        }
        CHECK(m.thread == 0 && m.name == r.member(i) && m.fiber != ums::fiber_id{}, "%s",
              text.c_str());
        CHECK(std::find(m.stack.begin(), m.stack.end(), r.calls[i]) != m.stack.end(), "%zu: %s", i,
              text.c_str());
        CHECK(text.find('"' + m.name + "\" waits for mutex") != std::string::npos, "%s",
              text.c_str());
        CHECK(m.spawned_at != nullptr && text.find("spawned at 0x") != std::string::npos, "%s",
              text.c_str());
    }
}

std::unique_ptr<ring> make_ring(int number, unsigned n, std::mt19937_64& random, bool with_thread) {
    auto r = std::make_unique<ring>();
    r->name = "ring" + std::to_string(number);
    for (unsigned i = 0; i < n; ++i)
        r->mutexes.push_back(std::make_unique<any_mutex>(static_cast<unsigned>(random())));
    r->calls.resize(n);
    if (with_thread) r->thread = static_cast<unsigned>(random() % n);
    std::vector<unsigned> order(n);
    for (unsigned i = 0; i < n; ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    for (const unsigned i : order) {
        ring* at = r.get();
        if (i == r->thread)
            std::thread{[at, i] { member_main(*at, i); }}.detach();
        else
            fiber{{.name = r->member(i)}, [at, i] { member_main(*at, i); }}.detach();
    }
    return r;
}

// The cycles of one process stay, so each case must find its own cycle among all earlier ones.
const child_program rings{
    "rings", [](const child_arguments& a) {
        const int cases = std::stoi(a.at(0));
        const bool others_run = a.at(1) == "partial";
        std::mt19937_64 random{std::stoull(a.at(2))};
        ums::run({.processors = 2}, [&] {
            std::atomic<std::uint64_t> progress = 0;
            if (others_run)
                for (int i = 0; i < 4; ++i)
                    fiber{{.name = "busy"},
                          [&] {
                              ums::mutex own;
                              for (;;) {
                                  const std::lock_guard guard{own};
                                  ++progress;
                                  this_fiber::yield();
                              }
                          }}
                        .detach();
            std::vector<std::unique_ptr<ring>> all;
            ums::mutex held_long;
            held_long.lock();
            for (int i = 0; i < cases; ++i) {
                all.push_back(make_ring(i, 2 + static_cast<unsigned>(random() % 15), random,
                                        random() % 4 == 0));
                ring& r = *all.back();
                // Bystanders: one waits for a member, one waits for a fiber that runs, one gives
                // up.
                while (r.ready < r.mutexes.size()) this_fiber::yield();
                if (random() % 2 == 0) {
                    any_mutex& m = *r.mutexes[random() % r.mutexes.size()];
                    fiber{{.name = "tail"}, [&m] { m.lock(); }}.detach();
                    fiber{{.name = "timed"},
                          [] {
                              ums::timed_mutex own;
                              own.lock();
                              fiber{[&own] { (void)own.try_lock_for(1ms); }}.join();
                          }}
                        .detach();
                }
                if (random() % 4 == 0) fiber{{.name = "queue"}, [&] { held_long.lock(); }}.detach();
                const std::uint64_t before = progress;
                std::vector<ums::deadlock_cycle> found;
                while ((found = ums::find_deadlocks()).size() <= static_cast<std::size_t>(i))
                    this_fiber::yield();
                CHECK(found.size() == static_cast<std::size_t>(i) + 1, "%zu cycles", found.size());
                std::set<std::string> names;
                for (const ums::deadlock_cycle& c : found) {
                    const auto by_name = std::find_if(all.begin(), all.end(), [&](const auto& one) {
                        return c.members[0].name.starts_with(one->name + ".");
                    });
                    CHECK(by_name != all.end(), "%s", to_string(c).c_str());
                    CHECK(names.insert((*by_name)->name).second, "twice");
                    check(**by_name, c);
                }
                while (others_run && progress == before) this_fiber::yield();
            }
            std::fprintf(stderr, "found %d\n", cases);
            ::_exit(0);
        });
        return 1;
    }};

// What the variant sets, but for its check for deadlocks, and `words`.
child_environment with_processors(const std::string& words = "") {
    child_environment set;
    for (const char* variable : {"UMS_PROCESSORS", "UMS_POLICY"})
        if (const char* value = std::getenv(variable)) set.emplace_back(variable, value);
    set.emplace_back("UMS_DEBUG",
                     with_debug_words("deadlock=off") + (words.empty() ? "" : "," + words));
    return set;
}

TEST_F(deadlock_test, cycles_of_2_to_16_are_found_with_names_and_stacks) {
    const std::uint64_t seed = test_seed();
    child_environment variables = with_processors();
    variables.emplace_back("PATH", "");  // 200 times addr2line would take minutes.
    for (unsigned i = 0; i < unsigned{scaled(20, 4)}; ++i) {
        const child_end end = run_child(
            "rings", {"10", i % 2 == 0 ? "alone" : "partial", std::to_string(seed + i)}, variables);
        EXPECT_EQ(end.code, 0) << end;
        EXPECT_EQ(end.err, "found 10\n");
    }
}

// A reader among the holders is not known, so there is no cycle to find; and nothing else is taken
// for one.
TEST_F(deadlock_test, who_waits_for_readers_is_in_no_cycle) {
    ums::run({.processors = 2}, [] {
        ums::shared_mutex one, other;
        std::atomic<int> ready = 0;
        auto take = [&](ums::shared_mutex& first, ums::shared_mutex& second) {
            const std::shared_lock outer{first};
            ++ready;
            while (ready < 3) this_fiber::yield();
            const std::shared_lock inner{second};
        };
        fiber f{[&] { take(one, other); }}, g{[&] { take(other, one); }};
        fiber writer{[&] {
            while (ready < 2) this_fiber::yield();
            EXPECT_TRUE(ums::find_deadlocks().empty());
            ++ready;
            const std::scoped_lock both{one, other};
        }};
        for (int i = 0; i < 10; ++i) EXPECT_TRUE(ums::find_deadlocks().empty());
        f.join();
        g.join();
        writer.join();
    });
}

// --- At a standstill ---

void deadlock_of_three() {
    std::mt19937_64 random{1};
    static const auto r = make_ring(0, 3, random, false);
}

const child_program stands_still{
    "stands still", [](const child_arguments&) {
        ums::run([] {
            deadlock_of_three();
            fiber{{.name = "sleeper"}, [] { this_fiber::sleep_for(1ms); }}.join();
        });
        return 1;
    }};

std::size_t count(const std::string& text, const std::string& part) {
    std::size_t n = 0;
    for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size())
        ++n;
    return n;
}

TEST_F(deadlock_test, the_option_abort_ends_a_program_that_stands_still) {
    const child_end end = run_child("stands still", {}, with_processors("deadlock=abort"));
    EXPECT_EQ(end.signal, SIGABRT) << end;
    EXPECT_EQ(count(end.err, "ums: deadlock: 3 wait"), 1u) << end;
    for (const char* part : {"\"ring0.0\" waits for mutex 0x", "\"ring0.1\" waits for mutex 0x",
                             "\"ring0.2\" waits for mutex 0x", "#3 0x"})
        EXPECT_NE(end.err.find(part), std::string::npos) << part << ": " << end;
    // ThreadSanitizer lets no helper begin.
    const bool has_lines = !under_tsan && ::access("/usr/bin/addr2line", X_OK) == 0;
    const char* const shown = has_lines ? "deadlock_test.cpp:" : "source lines: addr2line ";
    EXPECT_GE(count(end.err, shown), has_lines ? 3u : 1u) << end;
}

// The child's own standard error tells it when the report has come.
const child_program goes_on{
    "goes on", [](const child_arguments&) {
        int ends[2];
        if (::pipe(ends) != 0) return 1;
        const int parent = ::dup(STDERR_FILENO);
        ::dup2(ends[1], STDERR_FILENO);
        ums::runtime started;
        deadlock_of_three();
        std::string text;
        char byte;
        auto read_until = [&](const char* mark) {
            while (text.find(mark) == std::string::npos && ::read(ends[0], &byte, 1) == 1)
                text += byte;
        };
        read_until("ums: deadlock: ");
        // The program stands still again and again, and has nothing new to report.
        for (int i = 0; i < 20; ++i) {
            fiber{[] { this_fiber::yield(); }}.join();
            std::this_thread::yield();
        }
        std::fprintf(stderr, "the end\n");
        read_until("the end\n");
        ::dup2(parent, STDERR_FILENO);
        std::fprintf(stderr, "%s", text.c_str());
        ::_exit(0);
    }};

TEST_F(deadlock_test, the_option_report_reports_once_and_goes_on) {
    const child_end end = run_child("goes on", {}, with_processors("deadlock"));
    EXPECT_EQ(end.code, 0) << end;
    EXPECT_EQ(count(end.err, "ums: deadlock: "), 1u) << end;
}

const child_program two_clusters{
    "two clusters", [](const child_arguments&) {
        ums::run([] {
            static ums::cluster other{{.name = "other"}};
            static ums::mutex a, b;
            static std::atomic<int> ready = 0;
            auto take = [](ums::mutex& first, ums::mutex& second) {
                const std::lock_guard outer{first};
                ++ready;
                while (ready < 2) this_fiber::yield();
                const std::lock_guard inner{second};
            };
            fiber f{{.name = "here"}, [&] { take(a, b); }};
            fiber g{{.name = "there", .cluster = &other}, [&] { take(b, a); }};
            f.join();
        });
        return 1;
    }};

TEST_F(deadlock_test, a_cycle_across_clusters_is_found_at_a_standstill) {
    const child_end end = run_child("two clusters", {}, with_processors("deadlock=abort"));
    EXPECT_EQ(end.signal, SIGABRT) << end;
    EXPECT_NE(end.err.find("\"here\" waits for mutex"), std::string::npos) << end;
    EXPECT_NE(end.err.find("\"there\" waits for mutex"), std::string::npos) << end;
}

// --- What is not a deadlock ---

TEST_F(deadlock_test, nothing_is_found_without_a_runtime) {
    EXPECT_TRUE(ums::find_deadlocks().empty());
    EXPECT_EQ(ums::report_deadlocks(), 0u);
}

TEST_F(deadlock_test, a_chain_of_waiters_is_no_cycle) {
    ums::run({.processors = 2}, [] {
        constexpr int n = 100;
        std::vector<std::unique_ptr<ums::mutex>> chain;
        for (int i = 0; i <= n; ++i) chain.push_back(std::make_unique<ums::mutex>());
        chain[0]->lock();
        std::vector<fiber> all;
        std::atomic<int> ready = 0;
        for (int i = 0; i < n; ++i)
            all.emplace_back([&, i] {
                const std::lock_guard own{*chain[static_cast<std::size_t>(i) + 1]};
                ++ready;
                const std::lock_guard next{*chain[static_cast<std::size_t>(i)]};
            });
        while (ready < n) {
            this_fiber::yield();
            EXPECT_TRUE(ums::find_deadlocks().empty());
        }
        EXPECT_TRUE(ums::find_deadlocks().empty());
        chain[0]->unlock();
        for (fiber& f : all) f.join();
    });
}

// A circle in which one member has a deadline, or can be stopped, comes apart by itself.
TEST_F(deadlock_test, a_wait_that_ends_by_itself_breaks_the_circle) {
    ums::run({.processors = 2}, [] {
        for (const bool timed : {true, false}) {
            ums::timed_mutex a, b;
            std::stop_source stop;
            std::atomic<bool> waits = false;
            a.lock();
            fiber f{[&] {
                const std::lock_guard own{b};
                waits = true;
                const std::lock_guard other{a};
            }};
            while (!waits) this_fiber::yield();
            fiber watcher{[&] {
                for (int i = 0; i < 200; ++i) {
                    EXPECT_TRUE(ums::find_deadlocks().empty());
                    this_fiber::yield();
                }
                stop.request_stop();
            }};
            EXPECT_FALSE(timed ? b.try_lock_for(5ms) : b.lock(stop.get_token()));
            watcher.join();
            a.unlock();
            f.join();
        }
    });
}

// Hand-overs, barging, mutexes that come and go, and owners that run, while two fibers look for
// deadlocks all the time.
TEST_F(deadlock_test, nothing_is_found_where_all_lock_in_one_order) {
    const std::uint64_t seed = test_seed();
    ums::run({.processors = 2}, [seed] {
        constexpr int workers = 24, rounds = scaled(1500, 150);
        std::vector<std::unique_ptr<any_mutex>> mutexes;
        for (unsigned i = 0; i < 6; ++i) mutexes.push_back(std::make_unique<any_mutex>(i));
        std::atomic<int> left = workers;
        auto look = [&] {
            while (left != 0) {
                const auto found = ums::find_deadlocks();
                EXPECT_TRUE(found.empty()) << to_string(found[0]);
                this_fiber::yield();
            }
        };
        auto work = [&](int n) {
            std::mt19937_64 random{seed + static_cast<unsigned>(n)};
            for (int i = 0; i < rounds; ++i) {
                const std::size_t first = random() % 6;
                mutexes[first]->lock();
                const std::size_t second = first + 1 + random() % 6;
                if (random() % 4 == 0) this_fiber::yield();
                if (second < 6) {
                    mutexes[second]->lock();
                    mutexes[second]->unlock();
                }
                mutexes[first]->unlock();
                if (random() % 16 == 0) {  // A mutex that is destroyed as soon as its wait is over.
                    auto brief = std::make_unique<ums::fair_mutex>();
                    brief->lock();
                    fiber f{[&] { brief->lock(), brief->unlock(); }};
                    this_fiber::yield();
                    brief->unlock();
                    f.join();
                }
            }
            --left;
        };
        std::vector<fiber> fibers;
        std::vector<std::thread> threads;
        threads.emplace_back(look);
        for (int i = 0; i < workers - 2; ++i) fibers.emplace_back(work, i);
        for (int i = workers - 2; i < workers; ++i) threads.emplace_back(work, i);
        fiber{look}.join();
        for (fiber& f : fibers) f.join();
        for (std::thread& t : threads) t.join();
    });
}

}  // namespace
