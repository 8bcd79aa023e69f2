// SPDX-License-Identifier: MIT
// variants: p1 nomembarrier mprotect migrate priority

// fork() from a fiber: the child has a runtime with one processor and that fiber alone.

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <set>
#include <spawn.h>
#include <string>
#include <sys/wait.h>
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
#include "support/variant.hpp"
#include "ums/blocking.hpp"
#include "ums/channel.hpp"
#include "ums/child.hpp"
#include "ums/cluster.hpp"
#include "ums/deadlock.hpp"
#include "ums/fiber.hpp"
#include "ums/fiber_local.hpp"
#include "ums/fork_join.hpp"
#include "ums/io.hpp"
#include "ums/jfiber.hpp"
#include "ums/keep_carrier.hpp"
#include "ums/mutex.hpp"
#include "ums/offload.hpp"
#include "ums/parallel_for.hpp"
#include "ums/run.hpp"
#include "ums/semaphore.hpp"
#include "ums/signals.hpp"
#include "ums/stats.hpp"
#include "ums/this_fiber.hpp"
#include "ums/value_fiber.hpp"

extern char** environ;

namespace {

using namespace std::chrono_literals;
namespace this_fiber = ums::this_fiber;

const ums::options two{.processors = 2};

// A child that hangs is ended by this, and its parent sees the signal. It limits no speed.
constexpr unsigned hung_seconds = 300;

constexpr int fine = 42;

// How often a test forks: a number for an ordinary build and one for a sanitizer.
int forks_wanted(int ordinary, int sanitized) {
    return sized("UMS_TEST_FORKS", by_variant(ordinary, ordinary / 4), sanitized);
}

constexpr const char* at_exit_under_asan =
    "LeakSanitizer knows the stacks of the child's threads only, and takes what others had for "
    "leaked";

class fork_test : public conserving_test {
protected:
    void SetUp() override {
        if (under_tsan)
            GTEST_SKIP() << "ThreadSanitizer's runtime cannot go on in the child of a fork()";
    }
};

// What the child's function returned, or minus the signal that has ended it.
int outcome_of(pid_t child) {
    const int status = ums::wait_child(child).value();
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// Runs f() in a child and returns what that returned. On a fiber.
template <class F>
int in_child(F f) {
    std::fflush(nullptr);  // Otherwise an exit() of the child writes it once more.
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(hung_seconds);
        ::_exit(f());
    }
    EXPECT_GT(child, 0);
    return outcome_of(child);
}

// Spawn and join, a mutex that is contended, a channel, sleep, a pipe.
int compute() {
    int sum = 0;
    ums::mutex lock;
    std::vector<ums::fiber> all;
    for (int i = 1; i <= 8; ++i)
        all.emplace_back([&, i] {
            for (int n = 0; n < 10; ++n) {
                const std::lock_guard hold{lock};
                const int before = sum;
                this_fiber::yield();
                sum = before + i;
            }
        });
    for (ums::fiber& f : all) f.join();
    if (sum != 360) return 1;

    ums::channel<int> numbers{2};
    ums::fiber producer{[&] {
        for (int i = 0; i < 20; ++i) static_cast<void>(numbers.send(i));
        numbers.close();
    }};
    int received = 0;
    while (const std::optional<int> n = numbers.receive()) received += *n;
    producer.join();
    if (received != 190) return 2;

    const auto begun = std::chrono::steady_clock::now();
    this_fiber::sleep_for(1ms);
    if (std::chrono::steady_clock::now() - begun < 1ms) return 3;

    int ends[2];
    if (!ums::io::pipe(ends)) return 4;
    auto reader = ums::spawn([&] {
        char text[6] = {};
        const auto n = ums::io::read(ends[0], text, 5);
        return n ? std::string{text, *n} : std::string{};
    });
    this_fiber::yield();  // It waits in the child's engine.
    if (!ums::io::write(ends[1], "hello", 5)) return 5;
    if (reader.join() != "hello") return 6;
    ums::io::close(ends[0]);
    ums::io::close(ends[1]);
    return fine;
}

// Fibers of every kind at work until it ends: they spawn, lock, wait, wait for descriptors, and
// block in the kernel.
class load {
public:
    load() {
        EXPECT_TRUE(ums::io::pipe(there_));
        EXPECT_TRUE(ums::io::pipe(back_));
        keep([] { ums::spawn([] { return 1; }).join(); });
        keep([this] {
            const std::lock_guard hold{lock_};
            this_fiber::yield();
        });
        keep([this] {
            const std::lock_guard hold{lock_};
            this_fiber::yield();
        });
        keep([] { this_fiber::sleep_for(50us); });
        keep([this] {
            char c = 'x';
            EXPECT_TRUE(ums::io::write(there_[1], &c, 1));
            EXPECT_TRUE(ums::io::read(back_[0], &c, 1));
            round_trips.fetch_add(1);
        });
        all_.emplace_back([this] {
            char c;
            while (ums::io::read(there_[0], &c, 1).value_or(0) == 1)
                EXPECT_TRUE(ums::io::write(back_[1], &c, 1));
        });
        keep([] { ums::blocking([] { ::usleep(100); }); });
        keep([] { ::usleep(200); });  // Unmarked.
        keep([] { ums::offload([] { ::usleep(100); }); });
        keep([] { this_fiber::yield(); });
    }
    ~load() {
        ends_ = true;
        for (std::size_t i = 0; i < all_.size(); ++i)
            if (i != echo_) all_[i].join();
        ums::io::close(there_[1]);
        all_[echo_].join();
        for (const int fd : {there_[0], back_[0], back_[1]}) ums::io::close(fd);
    }
    load(const load&) = delete;
    load& operator=(const load&) = delete;

    std::atomic<int> round_trips = 0;

private:
    template <class F>
    void keep(F f) {
        all_.emplace_back([this, f] {
            while (!ends_) f();
        });
    }

    static constexpr std::size_t echo_ = 5;  // In all_.
    std::atomic<bool> ends_ = false;
    ums::mutex lock_;
    int there_[2], back_[2];
    std::vector<ums::fiber> all_;
};

TEST_F(fork_test, children_compute_while_two_processors_run) {
    ums::run(two, [] {
        load others;
        const int forks = forks_wanted(200, 50);
        for (int i = 0; i < forks; ++i)
            ASSERT_EQ(in_child(compute), fine) << "the child number " << i;
        const int before = others.round_trips;
        while (others.round_trips < before + 10)
            this_fiber::yield();  // The parent's engine is as it was.
    });
}

TEST_F(fork_test, fibers_on_both_processors_fork_at_once) {
    ums::run(two, [] {
        load others;
        const int forks = forks_wanted(400, 20) / 4;
        std::vector<ums::fiber> forkers;
        for (int k = 0; k < 4; ++k)
            forkers.emplace_back([=] {
                for (int i = 0; i < forks; ++i) ASSERT_EQ(in_child(compute), fine);
            });
        for (ums::fiber& f : forkers) f.join();
    });
}

TEST_F(fork_test, the_child_has_one_processor_and_one_fiber) {
    ums::run(two, [] {
        ums::counting_semaphore<> never{0};
        ums::fiber other{[&] { never.acquire(); }};
        EXPECT_EQ(in_child([] {
                      const ums::runtime_stats s = ums::stats();
                      if (ums::cluster::standard().processors() != 1) return 1;
                      if (s.spawned - s.finished != 1) return 2;
                      return conservation::threads().size() == 1 ? fine : 3;
                  }),
                  fine);
        never.release();
        other.join();
    });
}

TEST_F(fork_test, the_child_forks_again) {
    ums::run(two, [] {
        load others;
        EXPECT_EQ(in_child([] {
                      for (int i = 0; i < 3; ++i)
                          if (const int got = in_child(compute); got != fine) return got;
                      return in_child([] { return in_child(compute) + in_child(compute); }) ==
                                     2 * fine
                                 ? fine
                                 : 7;
                  }),
                  fine);
    });
}

TEST_F(fork_test, a_child_that_returns_from_its_fiber_ends_well) {
    if (under_asan) GTEST_SKIP() << at_exit_under_asan;
    ums::run(two, [] {
        load others;
        const pid_t parent = ::getpid();
        auto forks = ums::spawn([] {
            const pid_t made = ::fork();
            if (made == 0) {
                ::alarm(hung_seconds);
                ums::fiber{[] { this_fiber::sleep_for(1ms); }}.detach();  // The last to end.
            }
            return made;
        });
        const pid_t child = forks.join();
        ASSERT_EQ(::getpid(), parent);
        EXPECT_EQ(outcome_of(child), 0);
    });
}

TEST_F(fork_test, a_child_may_exit) {
    if (under_asan) GTEST_SKIP() << at_exit_under_asan;
    ums::run(two, [] {
        load others;
        EXPECT_EQ(in_child([]() -> int {
                      if (compute() != fine) return 1;
                      std::fflush(nullptr);
                      std::exit(fine);
                  }),
                  fine);
    });
}

TEST_F(fork_test, a_child_may_execute_a_program) {
    ums::run(two, [] {
        load others;
        EXPECT_EQ(in_child([] {
                      ::execl("/bin/sh", "sh", "-c", "exit 42", nullptr);
                      return 1;
                  }),
                  fine);
        EXPECT_EQ(WEXITSTATUS(std::system("exit 42")), fine);
        pid_t spawned;
        std::string shell = "sh", option = "-c", text = "exit 42";
        char* const arguments[] = {shell.data(), option.data(), text.data(), nullptr};
        ASSERT_EQ(::posix_spawn(&spawned, "/bin/sh", nullptr, nullptr, arguments, environ), 0);
        EXPECT_EQ(outcome_of(spawned), fine);
    });
}

TEST_F(fork_test, no_descriptor_of_the_parents_engine_is_left_in_the_child) {
    ums::run(two, [] {
        load others;
        while (others.round_trips < 10) this_fiber::yield();  // There is an engine.
        EXPECT_EQ(in_child([] {
                      for (const std::string& fd : conservation::fds())
                          for (const char* what : {"eventpoll", "eventfd", "perf_event"})
                              if (fd.find(what) != fd.npos)
                                  return std::fprintf(stderr, "%s\n", fd.c_str()), 1;
                      return fine;
                  }),
                  fine);
    });
}

TEST_F(fork_test, what_the_child_does_with_a_descriptor_is_not_seen_by_the_parents_engine) {
    ums::run(two, [] {
        int ends[2];
        ASSERT_TRUE(ums::io::pipe(ends));
        auto waits = ums::spawn([&] {
            char c = 0;
            return ums::io::read(ends[0], &c, 1).value_or(0) == 1 ? c : '?';
        });
        for (int i = 0; i < 10; ++i) this_fiber::yield();
        EXPECT_EQ(in_child([&] {
                      ums::io::close(ends[0]);  // Registered with the parent's engine.
                      ums::io::close(ends[1]);
                      return compute();
                  }),
                  fine);
        // By the kernel's write(): that of libums would wake the reader without the engine.
        EXPECT_EQ(::write(ends[1], "y", 1), 1);
        EXPECT_EQ(waits.join(), 'y');
        ums::io::close(ends[0]);
        ums::io::close(ends[1]);
    });
}

TEST_F(fork_test, a_descriptor_that_the_parent_waited_for_works_in_the_child) {
    ums::run(two, [] {
        int ends[2];
        ASSERT_TRUE(ums::io::pipe(ends));
        char c = 0;
        auto writes = ums::spawn([&] {
            this_fiber::sleep_for(1ms);
            return ums::io::write(ends[1], "a", 1).value_or(0);
        });
        EXPECT_EQ(ums::io::read(ends[0], &c, 1).value_or(0), 1U);
        EXPECT_EQ(writes.join(), 1U);
        EXPECT_EQ(in_child([&] {
                      char got = 0;
                      auto later = ums::spawn([&] {
                          this_fiber::sleep_for(1ms);
                          return ums::io::write(ends[1], "b", 1).value_or(0);
                      });
                      const auto n = ums::io::read(ends[0], &got, 1);
                      return n && *n == 1 && got == 'b' && later.join() == 1 ? fine : 1;
                  }),
                  fine);
        ums::io::close(ends[0]);
        ums::io::close(ends[1]);
    });
}

// The kernel's numbers of all eventfds that the process has open.
std::set<std::string> open_eventfds() {
    std::set<std::string> found;
    for (const auto& fd : std::filesystem::directory_iterator{"/proc/self/fdinfo"}) {
        std::ifstream lines{fd.path()};
        for (std::string line; std::getline(lines, line);)
            if (line.starts_with("eventfd-id:")) found.insert(line);
    }
    return found;
}

// Each would take the other's rings.
TEST_F(fork_test, no_eventfd_is_the_parents_and_the_childs) {
    ums::run(two, [] {
        ums::signal_events first{SIGUSR1};
        const ums::signal_events second{SIGUSR2};
        EXPECT_EQ(first.wait(ums::deadline_after(1us)).error(), std::errc::timed_out);
        const std::set<std::string> parents = open_eventfds();
        if (parents.empty()) GTEST_SKIP() << "the kernel does not number eventfds";
        EXPECT_EQ(in_child([&] {
                      for (const std::string& one : open_eventfds())
                          if (parents.contains(one)) return 1;
                      ums::fiber sender{[] { ::kill(::getpid(), SIGUSR1); }};
                      const int number = first.wait(ums::deadline_after(20s)).value_or(0);
                      sender.join();
                      return number == SIGUSR1 ? fine : 2;
                  }),
                  fine);
        EXPECT_EQ(first.wait(ums::deadline_after(1us)).error(), std::errc::timed_out);
    });
}

// The child takes a mutex twice, for which fibers that it left behind wait. `woken` says that one
// of them was woken to try before the fork.
template <class Mutex>
void take_where_others_wait(bool woken) {
    ums::run(one_processor, [woken] {
        Mutex m;
        m.lock();
        std::vector<ums::fiber> others;
        for (int i = 0; i < 2; ++i) others.emplace_back([&] { const std::lock_guard hold{m}; });
        this_fiber::yield();
        if (woken) {
            m.unlock();
            m.lock();
        }
        EXPECT_EQ(in_child([&] {
                      int sum = 0;
                      ums::fiber also{[&] {
                          const std::lock_guard hold{m};
                          sum += 40;
                      }};
                      this_fiber::yield();
                      m.unlock();
                      also.join();
                      const std::lock_guard hold{m};
                      return sum + 2;
                  }),
                  fine);
        m.unlock();
        for (ums::fiber& f : others) f.join();
    });
}

TEST_F(fork_test, a_mutex_of_the_child_passes_by_those_that_were_left_behind) {
    take_where_others_wait<ums::mutex>(false);
    take_where_others_wait<ums::mutex>(true);
    take_where_others_wait<ums::recursive_mutex>(false);
    take_where_others_wait<ums::fair_mutex>(false);
}

TEST_F(fork_test, joining_a_fiber_that_was_left_behind_returns) {
    ums::run(two, [] {
        ums::counting_semaphore<> never{0};
        ums::fiber other{[&] { never.acquire(); }};
        auto with_value = ums::spawn([&] {
            never.acquire();
            return 1;
        });
        auto ended = ums::spawn([] { return 7; });
        while (ums::stats().finished == 0) this_fiber::yield();
        EXPECT_EQ(in_child([&] {
                      other.join();
                      if (other.joinable()) return 1;
                      if (error_of([&] { with_value.join(); }) != std::errc::no_such_process)
                          return 2;
                      if (ended.join() != 7) return 3;
                      {
                          const ums::jfiber requested{[](const std::stop_token&) {}};
                      }
                      return compute();
                  }),
                  fine);
        never.release(2);
        other.join();
        EXPECT_EQ(with_value.join(), 1);
        EXPECT_EQ(ended.join(), 7);
    });
}

// call(f, g) calls both side by side, and g() on the caller: g forks while the fiber of f waits.
template <class Call>
int error_in_child_of(Call call) {
    ums::counting_semaphore<> parents{0};
    pid_t child = -1;
    int code = 1;
    try {
        call([&] { parents.acquire(); },
             [&] {
                 std::fflush(nullptr);
                 child = ::fork();
                 if (child != 0) return parents.release();
                 ::alarm(hung_seconds);
             });
    } catch (const std::system_error& e) {
        code = e.code() == std::errc::no_such_process ? fine : 2;
    }
    if (child == 0) ::_exit(code);
    EXPECT_EQ(code, 1);
    return outcome_of(child);
}

TEST_F(fork_test, a_fork_join_of_which_a_part_was_left_behind_throws) {
    ums::run(two, [] {
        EXPECT_EQ(error_in_child_of([](auto f, auto g) { ums::fork_join(f, g); }), fine);
        EXPECT_EQ(error_in_child_of([](auto f, auto g) {
                      static_cast<void>(ums::fork_join([&] { return f(), 1; }, g));
                  }),
                  fine);
        EXPECT_EQ(error_in_child_of([](auto f, auto g) {
                      ums::parallel_for(0, 2, 1, [&](int i) { i == 0 ? f() : g(); });
                  }),
                  fine);
    });
}

TEST_F(fork_test, a_mutex_that_others_wait_for_can_be_unlocked) {
    // With one processor, the other fiber is not inside the mutex's own lock at the fork.
    ums::run(one_processor, [] {
        ums::mutex lock;
        lock.lock();
        ums::fiber waits{[&] { const std::lock_guard hold{lock}; }};
        for (int i = 0; i < 100; ++i) this_fiber::yield();
        EXPECT_EQ(in_child([&] {
                      lock.unlock();  // Its waiter is not run.
                      return compute();
                  }),
                  fine);
        lock.unlock();
        waits.join();
    });
}

TEST_F(fork_test, waking_fibers_that_were_left_behind_does_nothing) {
    // With one processor, the others are not inside the semaphore's own lock at the fork.
    ums::run(one_processor, [] {
        ums::counting_semaphore<> permits{0};
        std::vector<ums::fiber> waiting;
        std::vector<ums::fiber_ref> parked;
        for (int i = 0; i < 3; ++i) {
            waiting.emplace_back([&] { permits.acquire(); });
            waiting.emplace_back([] { this_fiber::park(); });
            parked.push_back(waiting.back().ref());
        }
        for (int i = 0; i < 100; ++i) this_fiber::yield();
        EXPECT_EQ(in_child([&] {
                      permits.release(3);
                      ums::unpark_all(parked);
                      for (const ums::fiber_ref& f : parked) f.unpark();
                      return compute();
                  }),
                  fine);
        permits.release(3);
        ums::unpark_all(parked);
        for (ums::fiber& f : waiting) f.join();
    });
}

TEST_F(fork_test, deadlines_of_others_are_left_behind) {
    ums::run(two, [] {
        std::atomic<int> woken = 0;
        std::vector<ums::fiber> sleepers;
        for (int i = 0; i < 10; ++i)
            sleepers.emplace_back([&] {
                this_fiber::sleep_for(2ms);
                ++woken;
            });
        const int before = woken;
        EXPECT_EQ(in_child([&] {
                      const int at_fork = woken;
                      this_fiber::sleep_for(5ms);
                      return woken == at_fork ? fine : 1;
                  }),
                  fine);
        EXPECT_GE(woken, before);
        for (ums::fiber& f : sleepers) f.join();
    });
}

TEST_F(fork_test, clusters_are_left_behind) {
    ums::run(two, [] {
        ums::cluster own{{.name = "own", .processors = 2}};
        ums::fiber{
            {.cluster = &own},
            [&] {
                EXPECT_EQ(
                    in_child([&] {
                        if (own.processors() != 0) return 1;
                        const auto gone = std::errc::no_such_process;
                        if (error_of([&] { own.add_processor(); }) != gone) return 2;
                        if (error_of([&] { ums::fiber{{.cluster = &own}, [] {}}.join(); }) != gone)
                            return 3;
                        if (error_of([&] { own.set_group_weight(0, 1); }) != gone) return 4;
                        own.~cluster();
                        ums::cluster another{{.processors = 1}};
                        const auto made = ums::spawn({.cluster = &another}, compute).join();
                        return made;
                    }),
                    fine);
            }}
            .join();
    });
}

TEST_F(fork_test, the_child_may_have_more_processors) {
    ums::run(two, [] {
        load others;
        EXPECT_EQ(in_child([] {
                      ums::cluster& here = ums::cluster::standard();
                      here.add_processor();
                      if (const int got = compute(); got != fine) return got;
                      here.remove_processor();
                      return compute();
                  }),
                  fine);
    });
}

TEST_F(fork_test, a_marked_call_in_the_child_gives_its_processor_away) {
    ums::run(two, [] {
        EXPECT_EQ(in_child([] {
                      int ends[2];
                      if (::pipe(ends) != 0) return 1;
                      ums::fiber writer{[&] { EXPECT_EQ(::write(ends[1], "x", 1), 1); }};
                      char c = 0;
                      const auto n = ums::blocking([&] { return ::read(ends[0], &c, 1); });
                      writer.join();
                      if (n != 1 || c != 'x') return 2;
                      return ums::offload([] { return 7; }) == 7 ? compute() : 3;
                  }),
                  fine);
    });
}

TEST_F(fork_test, a_fork_in_a_marked_region) {
    ums::run(two, [] {
        load others;
        for (int i = 0; i < 20; ++i)
            ASSERT_EQ(ums::blocking([] { return in_child([] { return compute(); }); }), fine);
        for (int i = 0; i < 20; ++i) {
            const pid_t child = ums::blocking([] { return ::fork(); });
            if (child == 0) {
                ::alarm(hung_seconds);
                ::_exit(compute());
            }
            ASSERT_EQ(outcome_of(child), fine);
        }
    });
}

TEST_F(fork_test, a_fiber_that_keeps_its_kernel_thread_keeps_it_in_the_child) {
    ums::run(two, [] {
        load others;
        for (int i = 0; i < 20; ++i) {
            const ums::keep_carrier scope;
            const int ended = in_child([] {
                const std::thread::id mine = std::this_thread::get_id();
                const ums::keep_carrier inner;
                ums::fiber other{[] { this_fiber::sleep_for(1ms); }};
                other.join();
                const int computed = compute();
                return mine == std::this_thread::get_id() ? computed : 8;
            });
            ASSERT_EQ(ended, fine);
            this_fiber::sleep_for(100us);
        }
    });
}

TEST_F(fork_test, a_marked_region_that_began_before_the_fork_ends_in_the_child) {
    ums::run(two, [] {
        for (int i = 0; i < 20; ++i) {
            pid_t child;
            {
                const ums::blocking_region region;
                ::usleep(100);  // Another carrier has the processor meanwhile.
                child = ::fork();
            }
            if (child == 0) {
                ::alarm(hung_seconds);
                ::_exit(compute());
            }
            ASSERT_EQ(outcome_of(child), fine);
        }
    });
}

// After an unmarked call its fiber runs without a processor for a while.
TEST_F(fork_test, a_fiber_whose_processor_was_handed_off_forks) {
    ums::run(two, [] {
        load others;
        for (int i = 0; i < forks_wanted(40, 10); ++i) {
            ::usleep(1000);
            const pid_t child = ::fork();
            if (child == 0) {
                ::alarm(hung_seconds);
                ::_exit(compute());
            }
            ASSERT_EQ(outcome_of(child), fine);
        }
    });
}

TEST_F(fork_test, a_pinned_fiber_forks) {
    ums::run(two, [] {
        load others;
        ums::fiber{{.pinned = true},
                   [] {
                       EXPECT_EQ(in_child([] {
                                     ums::cluster::standard().add_processor();
                                     return compute();
                                 }),
                                 fine);
                   }}
            .join();
    });
}

TEST_F(fork_test, fibers_that_are_preempted_fork) {
    if (never_stops) GTEST_SKIP() << "nothing is stopped under a sanitizer";
    ums::options slices = two;
    slices.time_slice_us = 500;
    ums::run(slices, [] {
        std::atomic<bool> ends = false;
        std::vector<ums::fiber> computing;
        for (int i = 0; i < 3; ++i)
            computing.emplace_back([&] {
                while (!ends) {
                }
            });
        std::vector<ums::fiber> forkers;
        for (int i = 0; i < 2; ++i)
            forkers.emplace_back([] {
                for (int n = 0; n < forks_wanted(40, 10); ++n) ASSERT_EQ(in_child(compute), fine);
            });
        for (ums::fiber& f : forkers) f.join();
        ends = true;
        for (ums::fiber& f : computing) f.join();
    });
}

TEST_F(fork_test, a_paused_cluster_is_left_behind) {
    ums::run(two, [] {
        ums::cluster other{{.name = "other", .processors = 1}};
        ums::fiber waits{{.cluster = &other}, [] { this_fiber::sleep_for(1ms); }};
        other.pause();
        EXPECT_EQ(in_child([&] {
                      if (error_of([&] { other.resume(); }) != std::errc::no_such_process) return 1;
                      return compute();
                  }),
                  fine);
        other.resume();
        waits.join();
    });
}

TEST_F(fork_test, the_child_does_not_end_while_a_fiber_is_in_another_cluster) {
    if (under_asan) GTEST_SKIP() << at_exit_under_asan;
    ums::run(two, [] {
        int ends[2];
        ASSERT_EQ(::pipe(ends), 0);
        auto forks = ums::spawn([&] {
            const pid_t made = ::fork();
            if (made != 0) return made;
            ::alarm(hung_seconds);
            // Never destroyed: the process ends once its last fiber has.
            auto* const other = new ums::cluster{{.name = "other", .processors = 1}};
            ums::fiber{[other, to = ends[1]] {
                this_fiber::migrate(*other);
                this_fiber::sleep_for(5ms);
                EXPECT_EQ(::write(to, "x", 1), 1);
            }}.detach();
            return made;
        });
        const pid_t child = forks.join();
        EXPECT_EQ(outcome_of(child), 0);
        ::close(ends[1]);
        char c = 0;
        EXPECT_EQ(::read(ends[0], &c, 1), 1);
        ::close(ends[0]);
    });
}

// --- Each lock of the library's own is held by another thread at many of the forks ---

class lock_fork_test : public fork_test {
protected:
    // `user` is called over and over, by a plain thread or by a fiber on the other processor, and
    // once in each child, where it would wait for ever for a lock that it finds held.
    enum class by { thread, fiber };
    template <class F>
    static void fork_while(by whom, F user) {
        fork_while(whom, user, user, two);
    }
    template <class F, class G>
    static void fork_while(by whom, F user, G in_each_child, const ums::options& o) {
        ums::run(o, [&] {
            std::atomic<bool> ends = false;
            auto use = [&] {
                while (!ends) {
                    user();
                    if (whom == by::fiber) this_fiber::yield();
                }
            };
            std::optional<plain_thread> thread;
            std::optional<ums::fiber> fiber;
            if (whom == by::thread)
                thread.emplace(use);
            else
                fiber.emplace(use);
            for (int i = 0; i < forks_wanted(60, 10); ++i)
                ASSERT_EQ(in_child([&] {
                              in_each_child();
                              return compute();
                          }),
                          fine)
                    << "the child number " << i;
            ends = true;
            if (thread) thread->join();
            if (fiber) fiber->join();
        });
    }
};

TEST_F(lock_fork_test, the_depot_of_stacks) {
    fork_while(by::thread, [] { ums::fiber{[] {}}.join(); });
}

TEST_F(lock_fork_test, the_keys_of_fiber_locals) {
    fork_while(by::thread, [] { const ums::fiber_local<int> key; });
}

TEST_F(lock_fork_test, clusters_processors_and_kernel_threads_come_and_go) {
    fork_while(by::fiber, [] {
        ums::cluster c{{.processors = 1}};
        c.add_processor();
        ums::fiber{{.cluster = &c}, [] {}}.join();
    });
}

// Somebody urgent waits for what the caller holds.
void lend(ums::mutex& lock) {
    std::unique_lock hold{lock};
    ums::fiber urgent{{.priority = 3}, [&] { const std::lock_guard then{lock}; }};
    for (int i = 0; i < 3; ++i) this_fiber::yield();
    hold.unlock();
    urgent.join();
}

ums::options with_priorities() {
    ums::options o = two;
    o.policy = ums::policy_kind::priority;
    return o;
}

TEST_F(lock_fork_test, priorities_are_lent) {
    ums::mutex lock;
    fork_while(
        by::fiber, [&] { lend(lock); },
        [] {
            ums::mutex own;
            lend(own);
        },
        with_priorities());
}

TEST_F(fork_test, the_child_holds_what_an_urgent_fiber_waits_for) {
    // With one processor, the urgent fiber is not inside the mutex's own lock at the fork.
    ums::options one = one_processor;
    one.policy = ums::policy_kind::priority;
    ums::run(one, [] {
        ums::mutex lock;
        lock.lock();
        ums::fiber urgent{{.priority = 3}, [&] { const std::lock_guard hold{lock}; }};
        for (int i = 0; i < 100; ++i) this_fiber::yield();
        EXPECT_EQ(in_child([&] {
                      ums::mutex own;
                      lend(own);
                      lock.unlock();
                      lend(own);
                      return compute();
                  }),
                  fine);
        lock.unlock();
        urgent.join();
    });
}

TEST_F(lock_fork_test, the_owners_of_signals) {
    fork_while(by::fiber, [] { const ums::signal_events one{SIGUSR2}; });
}

TEST_F(lock_fork_test, plain_threads_wait_for_a_descriptor) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_NONBLOCK), 0);
    fork_while(by::thread, [&] {
        char c;
        static_cast<void>(ums::io::read(ends[0], &c, 1, ums::deadline_after(10us)));
    });
    ::close(ends[0]);
    ::close(ends[1]);
}

TEST_F(lock_fork_test, descriptors_are_opened_and_closed) {
    fork_while(by::thread, [] {
        int ends[2];
        ASSERT_TRUE(ums::io::pipe(ends));
        ums::io::close(ends[0]);
        ums::io::close(ends[1]);
    });
}

TEST_F(lock_fork_test, calls_are_off_loaded) {
    fork_while(by::fiber, [] { ums::offload([] {}); });
}

TEST_F(lock_fork_test, deadlocks_are_looked_for) {
    fork_while(by::thread, [] { EXPECT_TRUE(ums::find_deadlocks().empty()); });
}

TEST_F(fork_test, a_plain_threads_child_has_no_runtime) {
    ums::run(two, [] {
        load others;
        pid_t child = 0;
        plain_thread{[&] {
            child = ::fork();
            if (child == 0) {
                ::alarm(hung_seconds);
                ::_exit(fine);
            }
        }}.join();
        EXPECT_EQ(outcome_of(child), fine);
        EXPECT_EQ(ums::offload([] {
                      const pid_t made = ::fork();
                      if (made == 0) ::_exit(fine);
                      return outcome_of(made);
                  }),
                  fine);
    });
}

TEST_F(fork_test, what_a_plain_threads_child_closes_stays_in_the_parents_engine) {
    ums::run(two, [] {
        int ends[2];
        ASSERT_TRUE(ums::io::pipe(ends));
        auto waits = ums::spawn([&] {
            char c = 0;
            return ums::io::read(ends[0], &c, 1).value_or(0) == 1 ? c : '?';
        });
        for (int i = 0; i < 10; ++i) this_fiber::yield();
        pid_t child = 0;
        plain_thread{[&] {
            child = ::fork();
            if (child == 0) {
                ::alarm(hung_seconds);
                ums::io::close(ends[0]);
                ums::io::close(ends[1]);
                ::_exit(fine);
            }
        }}.join();
        EXPECT_EQ(outcome_of(child), fine);
        EXPECT_EQ(::write(ends[1], "y", 1), 1);
        EXPECT_EQ(waits.join(), 'y');
        ums::io::close(ends[0]);
        ums::io::close(ends[1]);
    });
}

}  // namespace
