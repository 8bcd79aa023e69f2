// SPDX-License-Identifier: MIT
// Programs in which nothing can run any more, each in a way of its own, are told of; those that
// only look like it are not.
#include "runtime/standstill.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <poll.h>
#include <set>
#include <shared_mutex>
#include <stop_token>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "arch/sanitizer.hpp"
#include "support/child.hpp"
#include "support/waiting.hpp"
#include "ums/ums.hpp"

namespace {

using namespace ums;
using namespace std::chrono_literals;

// What each program's report must name: the kinds of waits in it.
struct program {
    const char* waits_for;
    std::function<void()> body;
};

void two_mutexes() {
    mutex a, b;
    latch both{2};
    fiber one{[&] {
        a.lock();
        both.arrive_and_wait();
        b.lock();
    }};
    b.lock();
    both.arrive_and_wait();
    a.lock();
}

template <class Wait>
void in_a_fiber(Wait wait) {
    fiber{wait}.join();
}

// Each waits for ever.
const std::map<std::string, program> endless{
    {"two_mutexes", {"mutex", two_mutexes}},
    {"a_mutex_whose_holder_waits",
     {"semaphore",
      [] {
          mutex m;
          counting_semaphore<> none{0};
          fiber holder{[&] {
              m.lock();
              none.acquire();
          }};
          until_waits(holder);
          m.lock();
      }}},
    {"fair_mutex",
     {"mutex",
      [] {
          fair_mutex m;
          m.lock();
          in_a_fiber([&] { m.lock(); });
      }}},
    {"shared_mutex",
     {"shared_mutex",
      [] {
          shared_mutex m;
          m.lock_shared();
          in_a_fiber([&] { m.lock(); });
      }}},
    {"shared_mutex_shared",
     {"shared_mutex",
      [] {
          shared_mutex m;
          m.lock();
          in_a_fiber([&] { m.lock_shared(); });
      }}},
    {"receive",
     {"receive",
      [] {
          channel<int> c{1};
          in_a_fiber([&] { (void)c.receive(); });
      }}},
    {"send",
     {"send",
      [] {
          channel<int> c{1};
          (void)c.send(1);
          (void)c.send(2);
      }}},
    {"rendezvous",
     {"send",
      [] {
          channel<int> c{0};
          (void)c.send(1);
      }}},
    {"select",
     {"select",
      [] {
          channel<int> a{1}, b{1};
          select(on_receive(a, [](std::optional<int>) {}),
                 on_receive(b, [](std::optional<int>) {}));
      }}},
    {"two_channels",
     {"receive",
      [] {
          channel<int> a{1}, b{1};
          fiber other{[&] {
              (void)a.receive();
              (void)b.send(1);
          }};
          (void)b.receive();
      }}},
    {"join", {"park", [] { in_a_fiber([] { this_fiber::park(); }); }}},
    {"two_joins",
     {"join",
      [] {
          std::unique_ptr<fiber> a, b;
          std::atomic<bool> are_made{false};
          a = std::make_unique<fiber>([&] {
              while (!are_made) this_fiber::yield();
              b->join();
          });
          b = std::make_unique<fiber>([&] { a->join(); });
          are_made = true;
          this_fiber::park();
      }}},
    {"park", {"park", [] { this_fiber::park(); }}},
    {"semaphore", {"semaphore", [] { counting_semaphore<>{0}.acquire(); }}},
    {"condition",
     {"condition",
      [] {
          mutex m;
          condition_variable changed;
          std::unique_lock lock{m};
          changed.wait(lock);
      }}},
    {"condition_any",
     {"condition",
      [] {
          mutex m;
          condition_variable_any changed;
          std::unique_lock lock{m};
          std::stop_source source;  // Nobody asks.
          changed.wait(lock, source.get_token(), [] { return false; });
      }}},
    {"future",
     {"future",
      [] {
          promise<int> p;
          (void)p.get_future().get();
      }}},
    {"shared_future",
     {"future",
      [] {
          promise<void> p;
          const shared_future<void> f = p.get_future().share();
          in_a_fiber([&] { f.wait(); });
      }}},
    {"latch", {"latch", [] { latch{1}.wait(); }}},
    {"barrier", {"barrier", [] { barrier<>{2}.arrive_and_wait(); }}},
    {"once",
     {"once",
      [] {
          once_flag flag;
          counting_semaphore<> none{0};
          fiber first{[&] { call_once(flag, [&] { none.acquire(); }); }};
          until_waits(first);
          call_once(flag, [] {});
      }}},
    {"event", {"latch", [] { manual_reset_event{}.wait(); }}},
    {"wait_group",
     {"latch",
      [] {
          wait_group group;
          group.add(1);
          group.wait();
      }}},
    {"scope",
     {"scope",
      [] {
          scope all;
          all.spawn([] { this_fiber::park(); });
          all.join();
      }}},
    {"keep_carrier",
     {"semaphore",
      [] {
          const keep_carrier kept;
          counting_semaphore<>{0}.acquire();
      }}},
    {"two_clusters",
     {"receive",
      [] {
          cluster other{{.processors = 1}};
          channel<int> c{1};
          fiber there{fiber_options{.cluster = &other}, [&] { (void)c.receive(); }};
          there.join();
      }}},
    {"an_idle_pool",
     {"semaphore",
      [] {
          offload([] {});  // Leaves a thread that waits for work.
          counting_semaphore<>{0}.acquire();
      }}},
    {"an_open_stream",
     {"semaphore",
      [] {
          auto [here, there] = net::stream::pair().value();
          (void)here.write_all("x");
          char c = 0;
          (void)there.read(&c, 1);
          counting_semaphore<>{0}.acquire();
      }}},
};

constexpr auto long_enough = 900ms;  // Longer than all looks together.

void thread_that(std::function<void()> later) {
    std::thread{[later = std::move(later)] {
        std::this_thread::sleep_for(long_enough);
        later();
    }}.detach();
}

// Each ends by itself.
const std::map<std::string, std::function<void()>> passing{
    {"sleep", [] { this_fiber::sleep_for(long_enough); }},
    {"try_for", [] { (void)counting_semaphore<>{0}.try_acquire_for(long_enough); }},
    {"a_plain_thread",
     [] {
         counting_semaphore<> s{0};
         thread_that([&] { s.release(); });
         s.acquire();
         std::this_thread::sleep_for(10ms);
     }},
    {"a_descriptor",
     [] {
         auto [here, there] = net::stream::pair().value();
         const int fd = there.fd();
         if (const pid_t child = ::fork(); child == 0) {
             ::usleep(900'000);
             (void)!::write(fd, "x", 1);
             ::_exit(0);
         }
         char c = 0;
         (void)here.read(&c, 1);
     }},
    {"a_blocking_read",
     [] {
         int ends[2];
         ASSERT_EQ(::pipe(ends), 0);
         if (const pid_t child = ::fork(); child == 0) {
             ::usleep(900'000);
             (void)!::write(ends[1], "x", 1);
             ::_exit(0);
         }
         counting_semaphore<> s{0};
         fiber reader{[&] {
             char c = 0;
             (void)!::read(ends[0], &c, 1);
             s.release();
         }};
         s.acquire();
         reader.join();
     }},
    {"a_marked_call",
     [] {
         counting_semaphore<> s{0};
         fiber sleeper{[&] {
             blocking([] { ::usleep(900'000); });
             s.release();
         }};
         s.acquire();
         sleeper.join();
     }},
    {"offload", [] { offload([] { ::usleep(900'000); }); }},
    {"a_child_process",
     [] {
         const pid_t child = ::fork();
         if (child == 0) {
             ::usleep(900'000);
             ::_exit(0);
         }
         (void)ums::wait_child(child);
     }},
    {"a_signal",
     [] {
         signal_events events{SIGUSR1};
         thread_that([] { ::kill(::getpid(), SIGUSR1); });
         (void)events.wait();
     }},
    {"a_stop_from_a_thread",
     [] {
         std::stop_source source;
         thread_that([&] { source.request_stop(); });
         mutex m;
         condition_variable_any changed;
         std::unique_lock lock{m};
         (void)changed.wait(lock, source.get_token(), [] { return false; });
         std::this_thread::sleep_for(10ms);
     }},
    {"shared_memory",
     [] {
         auto* const word = static_cast<std::atomic<int>*>(
             ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
         counting_semaphore<> s{0};
         if (const pid_t child = ::fork(); child == 0) {
             ::usleep(900'000);
             word->store(1);
             ::_exit(0);
         }
         std::thread poller{[&] {
             while (word->load() == 0) ::usleep(1000);
             s.release();
         }};
         s.acquire();
         poller.join();
     }},
    {"another_cluster_computes",
     [] {
         cluster other{{.processors = 1}};
         counting_semaphore<> s{0};
         fiber there{fiber_options{.cluster = &other}, [&] {
                         const auto end = std::chrono::steady_clock::now() + long_enough;
                         while (std::chrono::steady_clock::now() < end) {
                         }
                         s.release();
                     }};
         s.acquire();
         there.join();
     }},
    {"a_pause",
     [] {
         cluster other{{.processors = 1}};
         other.pause();  // Before the fiber is there, which may not end before resume().
         fiber there{fiber_options{.cluster = &other}, [] { this_fiber::sleep_for(1ms); }};
         thread_that([&] { other.resume(); });
         there.join();
     }},
    {"stopped_by_a_tool",
     [] {
         const pid_t parent = ::getpid();
         if (const pid_t child = ::fork(); child == 0) {
             ::kill(parent, SIGSTOP);
             ::usleep(900'000);
             ::kill(parent, SIGCONT);
             ::_exit(0);
         }
         this_fiber::sleep_for(1200ms);
     }},
};

const child_program ever{"waits_for_ever", [](const child_arguments& a) {
                             const auto processors = static_cast<unsigned>(std::stoi(a.at(1)));
                             run({.processors = processors}, endless.at(a.at(0)).body);
                             return 0;
                         }};
const child_program only_looks{"only_looks_like_it", [](const child_arguments& a) {
                                   run({.processors = 2}, passing.at(a.at(0)));
                                   return 0;
                               }};
// The main fiber is joined by a plain thread, which waits as well.
const child_program by_threads{"plain_threads_wait", [](const child_arguments&) {
                                   const runtime all{{.processors = 2}};
                                   counting_semaphore<> s{0};
                                   std::thread waits{[&] { s.acquire(); }};
                                   fiber{{.name = "mine"}, [&] { s.acquire(); }}.join();
                                   waits.join();
                                   return 0;
                               }};
const child_program goes_on{"goes_on_waiting", [](const child_arguments&) {
                                ::signal(SIGALRM, [](int) { ::_exit(7); });
                                ::alarm(2);
                                run({.processors = 1}, [] {
                                    this_fiber::sleep_for(1ms);
                                    counting_semaphore<>{0}.acquire();
                                });
                                return 0;
                            }};

// They mostly wait, so all run at the same time.
void for_each(const std::vector<std::string>& names, auto each) {
    std::vector<std::thread> all;
    for (const std::string& name : names) all.emplace_back([&each, name] { each(name); });
    for (std::thread& t : all) t.join();
}

TEST(standstill_test, each_way_to_wait_for_ever_is_told) {
    ASSERT_GE(endless.size(), 24u);
    std::vector<std::string> names;
    for (const auto& [name, _] : endless) names.push_back(name);
    for_each(names, [](const std::string& name) {
        for (const char* processors : {"1", "2"}) {
            const child_end end =
                run_child("waits_for_ever", {name, processors}, {{"UMS_DEBUG", "deadlock=exit"}});
            EXPECT_EQ(end.code, 2) << name << ": " << end;
            EXPECT_NE(end.err.find("nothing can run any more"), std::string::npos) << name << end;
            EXPECT_NE(end.err.find(std::string{"waits for "} + endless.at(name).waits_for),
                      std::string::npos)
                << name << ": " << end;
        }
    });
}

TEST(standstill_test, what_only_looks_like_it_is_not_told) {
    ASSERT_GE(passing.size(), 12u);
    std::vector<std::string> names;
    for (const auto& [name, _] : passing) {
#if defined(UMS_TSAN)
        // ThreadSanitizer may hang in the child of a process that has threads, and keeps a signal
        // back until a thread that it came to makes a call.
        static const std::set<std::string> odd{"a_signal",        "a_descriptor",
                                               "a_blocking_read", "a_child_process",
                                               "shared_memory",   "stopped_by_a_tool"};
        if (odd.contains(name)) continue;
#endif
        names.push_back(name);
    }
    for_each(names, [](const std::string& name) {
        const child_end end =
            run_child("only_looks_like_it", {name}, {{"UMS_DEBUG", "deadlock=exit"}});
        EXPECT_EQ(end.code, 0) << name << ": " << end;
        EXPECT_EQ(end.err, "") << name;
    });
}

// Told once by default, and the program waits on: a signal from outside ends it.
TEST(standstill_test, by_default_it_is_told_once_and_the_program_waits_on) {
    const child_end end = run_child("goes_on_waiting");
    EXPECT_EQ(end.code, 7) << end;
    const std::size_t at = end.err.find("nothing can run any more");
    EXPECT_NE(at, std::string::npos) << end;
    EXPECT_EQ(end.err.find("nothing can run any more", at + 1), std::string::npos) << end;
}

TEST(standstill_test, off_says_nothing) {
    const child_end end = run_child("goes_on_waiting", {}, {{"UMS_DEBUG", "deadlock=off"}});
    EXPECT_EQ(end.code, 7) << end;
    EXPECT_EQ(end.err, "");
}

TEST(standstill_test, plain_threads_that_wait_in_the_library_are_no_hope) {
    const child_end end = run_child("plain_threads_wait", {}, {{"UMS_DEBUG", "deadlock=exit"}});
    EXPECT_EQ(end.code, 2) << end;
    EXPECT_NE(end.err.find("\"mine\" waits for semaphore"), std::string::npos) << end;
}

}  // namespace
