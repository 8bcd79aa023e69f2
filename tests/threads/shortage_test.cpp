// SPDX-License-Identifier: MIT
//
// Fibers that block in the kernel where kernel threads, descriptors, queued signals or memory are
// short: either they continue, or one line on standard error says what is missing. Each program
// runs in a child process.

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <fcntl.h>
#include <fstream>
#include <new>
#include <pthread.h>
#include <sched.h>
#include <string>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/child.hpp"
#include "support/conservation.hpp"
#include "support/gate.hpp"
#include "support/refused_call.hpp"
#include "support/scale.hpp"
#include "ums/fiber.hpp"
#include "ums/run.hpp"
#include "ums/stats.hpp"
#include "ums/this_fiber.hpp"

namespace {

// The kernel threads from the `first_refused`th to the `last_refused`th request are refused.
[[maybe_unused]] std::atomic<int> threads_wanted{0}, first_refused{0}, last_refused{0};

// While this is set, a thread that was started since has no memory.
std::atomic<bool> new_threads_starve{false};
thread_local bool is_starving = false;

struct thread_start {
    void* (*run)(void*);
    void* argument;
};
[[maybe_unused]] void* start_starving(void* given) {
    const thread_start start = *static_cast<thread_start*>(given);
    std::free(given);
    is_starving = true;
    return start.run(start.argument);
}

}  // namespace

#if !defined(UMS_TEST_ASAN) && !defined(UMS_TEST_TSAN)
// In place of the C and the C++ library's. The sanitizers have their own, and count threads there.
extern "C" int pthread_create(pthread_t* made, const pthread_attr_t* attributes,
                              void* (*run)(void*), void* argument) noexcept {
    static const auto real =
        reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
    const int n = ++threads_wanted;
    if (n >= first_refused && n <= last_refused) return EAGAIN;
    if (!new_threads_starve) return real(made, attributes, run, argument);
    auto* const start = static_cast<thread_start*>(std::malloc(sizeof(thread_start)));
    *start = {run, argument};
    return real(made, attributes, &start_starving, start);
}

// Not inlined: GCC warns about free() if it sees through only one of the pair.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
    void* const made = is_starving ? nullptr : std::malloc(bytes);
    if (made == nullptr) throw std::bad_alloc{};
    return made;
}
[[gnu::noinline]] void operator delete(void* at) noexcept { std::free(at); }
void operator delete(void* at, std::size_t) noexcept { operator delete(at); }
#define CAN_REFUSE true
#else
#define CAN_REFUSE false
#endif

namespace {

constexpr int not_possible = 77;
constexpr int start_refused = 78;

// gtest notes failures here, outside of a test.
int result() { return ::testing::UnitTest::GetInstance()->ad_hoc_test_result().Failed() ? 1 : 0; }

void refuse_threads(int first, int last) {
    first_refused = first;
    last_refused = last;
}

// Runs `body` on one processor. A start that is refused with an error is a valid answer, too.
template <class F>
int run_on_one_processor(ums::options options, F body) {
    options.processors = 1;
    try {
        ums::run(options, body);
    } catch (const std::system_error& e) {
        if (e.code() == std::errc::operation_not_supported) return not_possible;
        std::fprintf(stderr, "%s\n", e.what());
        return start_refused;
    }
    return result();
}

// Blocks that many fibers in read(), one after the other, and then writes what they wait for.
void block_and_go_on(int fibers) {
    std::vector<pipe_gate> gates(static_cast<std::size_t>(fibers));
    std::vector<ums::fiber> all;
    for (pipe_gate& gate : gates) all.emplace_back([&gate] { EXPECT_TRUE(gate.pass()); });
    ums::this_fiber::yield();
    for (pipe_gate& gate : gates) gate.open();
    for (ums::fiber& one : all) one.join();
}

child_end run_short_of(const char* program, const child_arguments& arguments,
                       const child_environment& set = {}) {
    return run_child(program, arguments, set, std::chrono::seconds{60});
}

class shortage : public ::testing::TestWithParam<const char*> {
protected:
    static child_environment detector() { return {{"UMS_BLOCK", GetParam()}}; }
};

INSTANTIATE_TEST_SUITE_P(detectors, shortage, ::testing::Values("monitor"),
                         [](const auto& of) { return std::string{of.param}; });

// --- Kernel threads ---

const child_program one_refused{"one refused thread", [](const child_arguments& arguments) {
                                    const int nth = std::atoi(arguments.at(0).c_str());
                                    refuse_threads(nth, nth);
                                    return run_on_one_processor({}, [] {
                                        for (int i = 0; i < 5; ++i) block_and_go_on(3);
                                    });
                                }};

// Any one of them may be refused.
TEST_P(shortage, a_kernel_thread_that_is_refused_once_costs_no_processor) {
    if (!CAN_REFUSE) GTEST_SKIP() << "a sanitizer makes the threads here";
    int nth = 1;
    for (int started = 0; started < 3 && nth < 20; ++nth) {
        const child_end end = run_short_of("one refused thread", {std::to_string(nth)}, detector());
        if (end.code == start_refused || end.code == not_possible) continue;
        ++started;
        EXPECT_EQ(end.code, 0) << "the " << nth << "th: " << end;
    }
    if (nth == 20) GTEST_SKIP() << "not possible here";
}

// All kernel threads except those of the start are refused; fibers wait in read(), and their writer
// waits in the queue. A thread that was there before writes in the writer's place as soon as there
// is a line on standard error.
int stand_still(const ums::options& options, bool refuses) {
    int err[2];
    if (::pipe2(err, O_CLOEXEC) != 0) std::abort();
    const int kept = ::dup(STDERR_FILENO);
    constexpr int fibers = 8;
    std::vector<pipe_gate> gates(fibers);
    std::string said;
    std::thread rescuer{[&] {
        char byte;
        while (::read(err[0], &byte, 1) == 1) {
            said += byte;
            if (byte != '\n') continue;
            for (pipe_gate& gate : gates) gate.open();
            break;
        }
    }};
    ::dup2(err[1], STDERR_FILENO);
    std::atomic<bool> has_written{false};
    const int ended = run_on_one_processor(options, [&] {
        if (refuses) refuse_threads(1, 1 << 30);
        std::vector<ums::fiber> all;
        for (pipe_gate& gate : gates) all.emplace_back([&gate] { EXPECT_TRUE(gate.pass()); });
        ums::this_fiber::yield();
        // This is the writer: it gets here if there are enough kernel threads.
        has_written = true;
        for (pipe_gate& gate : gates) gate.open();
        for (ums::fiber& one : all) one.join();
    });
    ::dup2(kept, STDERR_FILENO);
    ::close(err[1]);
    rescuer.join();
    ::close(err[0]);
    ::close(kept);
    std::fprintf(stderr, "%s", said.c_str());
    return ended;
}

const child_program no_threads{"no threads",
                               [](const child_arguments&) { return stand_still({}, true); }};
const child_program few_carriers{"few carriers", [](const child_arguments&) {
                                     ums::options options;
                                     options.carriers = 4;
                                     return stand_still(options, false);
                                 }};

void says_one_line_or_nothing(const child_end& end) {
    if (end.code == not_possible) GTEST_SKIP() << "not possible here";
    EXPECT_EQ(end.code, 0) << end;
    if (!end.err.empty()) {
        EXPECT_EQ(end.err.rfind("ums: ", 0), 0U) << end;
    }
    EXPECT_LE(end.err_lines(), 1U) << end;
}

TEST_P(shortage, a_standstill_for_want_of_kernel_threads_is_told) {
    if (!CAN_REFUSE) GTEST_SKIP() << "a sanitizer makes the threads here";
    says_one_line_or_nothing(run_short_of("no threads", {}, detector()));
}
TEST_P(shortage, a_standstill_at_the_bound_is_told) {
    says_one_line_or_nothing(run_short_of("few carriers", {}, detector()));
}

// Calls that come back, and then some that take long, with no other fiber waiting.
const child_program busy_bound{"busy bound", [](const child_arguments&) {
                                   ums::options options;
                                   options.carriers = 4;
                                   return run_on_one_processor(options, [] {
                                       std::vector<ums::fiber> all;
                                       for (int i = 0; i < 12; ++i)
                                           all.emplace_back([] {
                                               for (int k = 0; k < 20; ++k) usleep(20'000);
                                           });
                                       for (ums::fiber& one : all) one.join();
                                       all.clear();
                                       for (int i = 0; i < 4; ++i)
                                           all.emplace_back([] { usleep(2'200'000); });
                                       for (ums::fiber& one : all) one.join();
                                       EXPECT_NE(ums::stats().carrier_refusals, 0U);
                                   });
                               }};

TEST_P(shortage, a_bound_that_stops_nobody_is_not_told) {
    const child_end end = run_short_of("busy bound", {}, detector());
    if (end.code == not_possible) GTEST_SKIP() << "not possible here";
    EXPECT_EQ(end.code, 0) << end;
    EXPECT_EQ(end.err, "");
}

const child_program starving{"starving threads", [](const child_arguments&) {
                                 return run_on_one_processor({}, [] {
                                     constexpr int fibers = 3;
                                     pipe_gate gates[fibers];
                                     std::vector<ums::fiber> all;
                                     for (pipe_gate& gate : gates)
                                         all.emplace_back([&gate] {
                                             if (!gate.pass()) std::abort();
                                         });
                                     new_threads_starve = true;
                                     ums::this_fiber::yield();
                                     for (pipe_gate& gate : gates) gate.open();
                                     for (ums::fiber& one : all) one.join();
                                     new_threads_starve = false;
                                     is_starving = false;
                                 });
                             }};

TEST_P(shortage, a_carrier_starts_without_memory) {
    if (!CAN_REFUSE) GTEST_SKIP() << "a sanitizer makes the threads here";
    const child_end end = run_short_of("starving threads", {}, detector());
    if (end.code == not_possible) GTEST_SKIP() << "not possible here";
    EXPECT_EQ(end.code, 0) << end;
}

// --- Descriptors ---

const child_program few_descriptors{
    "few descriptors", [](const child_arguments& arguments) {
        const rlimit limit{1024, 1024};
        if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return not_possible;
        const int fibers = std::atoi(arguments.at(0).c_str());
        int ends[2];
        if (::pipe(ends) != 0) return not_possible;
        return run_on_one_processor({}, [&] {
            std::atomic<int> entered{0}, passed{0};
            std::vector<ums::fiber> all;
            for (int i = 0; i < fibers; ++i)
                all.emplace_back([&] {
                    ++entered;
                    char byte;
                    if (::read(ends[0], &byte, 1) == 1) ++passed;
                });
            while (entered < fibers) ums::this_fiber::yield();
            std::vector<int> opened;
            for (int i = 0; i < 60; ++i) {
                opened.push_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
                EXPECT_GE(opened.back(), 0) << "the " << i + 1 << "th: " << std::strerror(errno);
            }
            for (const int fd : opened) ::close(fd);
            for (int i = 0; i < fibers; ++i) EXPECT_EQ(::write(ends[1], "x", 1), 1);
            for (ums::fiber& one : all) one.join();
            EXPECT_EQ(passed, fibers);
        });
    }};

TEST_P(shortage, nine_hundred_blocked_fibers_leave_the_program_its_descriptors) {
    const child_end end =
        run_short_of("few descriptors", {std::to_string(scaled(900, 100))}, detector());
    if (end.code == not_possible) GTEST_SKIP() << "not possible here";
    EXPECT_EQ(end.code, 0) << end;
}

// --- Signals ---

void loop_until_another_has_run() {
    std::atomic<bool> over{false};
    ums::fiber endless{[&] {
        while (!over.load(std::memory_order_relaxed)) {
        }
    }};
    ums::this_fiber::yield();
    over = true;
    endless.join();
}

const child_program all_blocked{"all signals blocked", [](const child_arguments&) {
                                    sigset_t all;
                                    sigfillset(&all);
                                    pthread_sigmask(SIG_SETMASK, &all, nullptr);
                                    return run_on_one_processor({.time_slice_us = 1000},
                                                                &loop_until_another_has_run);
                                }};

TEST_P(shortage, time_slices_end_where_the_program_blocks_all_signals) {
    if (never_stops) GTEST_SKIP() << "fibers are not stopped by a signal under this sanitizer";
    const child_end end = run_short_of("all signals blocked", {}, detector());
    if (end.code == not_possible) GTEST_SKIP() << "not possible here";
    EXPECT_EQ(end.code, 0) << end;
}

// --- Fibers that no signal can stop, with the default time slices ---

// Each of them waits in a loop for the one that was started after it.
template <class Step>
void loop_until_the_next_has_run(Step step) {
    constexpr int fibers = 6;
    std::atomic<int> ended = 0;
    std::vector<ums::fiber> all;
    for (int i = 0; i < fibers; ++i)
        all.emplace_back([&ended, step, i] {
            while (ended != i) step();  // The newest runs first, and ends last.
            ++ended;
        });
    for (ums::fiber& one : all) one.join();
}

const child_program all_blocked_later{"all signals blocked later", [](const child_arguments&) {
                                          return run_on_one_processor({}, [] {
                                              loop_until_the_next_has_run([] {
                                                  sigset_t all;
                                                  sigfillset(&all);
                                                  pthread_sigmask(SIG_SETMASK, &all, nullptr);
                                              });
                                          });
                                      }};

TEST_P(shortage, a_fiber_that_blocks_all_signals_and_loops_does_not_keep_its_processor) {
    if (never_stops) GTEST_SKIP() << "no processor leaves a fiber that computes under it";
    const child_end end = run_short_of("all signals blocked later", {}, detector());
    EXPECT_EQ(end.code, 0) << end;
    EXPECT_EQ(end.err, "");
}

// A clock that counts ticks finds such a loop in the kernel nearly always.
const child_program calls_in_ticks{
    "a loop of calls", [](const child_arguments&) {
        if (!refuse_call(SYS_perf_event_open, EPERM)) return not_possible;
        return run_on_one_processor({}, [] { loop_until_the_next_has_run([] { sched_yield(); }); });
    }};

TEST_P(shortage, a_loop_of_system_calls_does_not_keep_its_processor_without_perf_events) {
    if (never_stops) GTEST_SKIP() << "no processor leaves a fiber that computes under it";
    const child_end end = run_short_of("a loop of calls", {}, detector());
    if (end.code == not_possible) GTEST_SKIP() << "not possible here";
    EXPECT_EQ(end.code, 0) << end;
    EXPECT_EQ(end.err, "");
}

const child_program no_clocks{
    "no clocks", [](const child_arguments&) {
        if (!refuse_call(SYS_perf_event_open, EPERM) || !refuse_call(SYS_timer_create, EPERM))
            return not_possible;
        return run_on_one_processor({}, [] {
            EXPECT_NE(ums::info().find("time slice: late: "), std::string::npos) << ums::info();
            loop_until_the_next_has_run([] {});
        });
    }};

TEST_P(shortage, a_loop_does_not_keep_its_processor_without_any_clock) {
    if (never_stops) GTEST_SKIP() << "no processor leaves a fiber that computes under it";
    const child_end end = run_short_of("no clocks", {}, detector());
    if (end.code == not_possible) GTEST_SKIP() << "not possible here";
    EXPECT_EQ(end.code, 0) << end;
    EXPECT_EQ(end.err_lines(), 1U) << end;
}

// The limit counts the queued signals of all processes of the user, and each POSIX timer counts as
// one. While others take the places no stop comes (docs/limits.md); so root becomes a user of whom
// there is no other process.
bool limit_queued_signals(const std::string& to) {
    const auto own = static_cast<uid_t>(20'000 + ::getpid() % 40'000);
    if (::geteuid() == 0 && (::setresuid(own, own, own) != 0 || ::prctl(PR_SET_DUMPABLE, 1) != 0))
        return false;
    const rlim_t most = std::strtoul(to.c_str(), nullptr, 10);
    const rlimit limit{most, most};
    return ::setrlimit(RLIMIT_SIGPENDING, &limit) == 0;
}

const child_program few_signals{"few signals", [](const child_arguments& arguments) {
                                    if (!limit_queued_signals(arguments.at(0))) return not_possible;
                                    return run_on_one_processor({.time_slice_us = 1000},
                                                                &loop_until_another_has_run);
                                }};

bool do_others_queue_signals() {
    if (::geteuid() == 0) return false;  // See above.
    std::ifstream status{"/proc/self/status"};
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("SigQ:")) return line.find("\t0/") == line.npos;
    return false;
}

const child_program few_signals_by_default{
    "few signals, default", [](const child_arguments& arguments) {
        if (!limit_queued_signals(arguments.at(0))) return not_possible;
        return run_on_one_processor({}, [] { loop_until_the_next_has_run([] {}); });
    }};

TEST_P(shortage, a_loop_does_not_keep_its_processor_where_no_signals_are_queued) {
    if (never_stops) GTEST_SKIP() << "no processor leaves a fiber that computes under it";
    for (const char* limit : {"0", "1"}) {
        const child_end end = run_short_of("few signals, default", {limit}, detector());
        if (end.code == not_possible) GTEST_SKIP() << "not possible here";
        EXPECT_EQ(end.code, 0) << limit << ": " << end;
    }
}

// Slices that are asked for are refused at the start without a clock, as without a detector.
TEST_P(shortage, time_slices_end_or_are_refused_where_no_signals_are_queued) {
    if (never_stops) GTEST_SKIP() << "fibers are not stopped by a signal under this sanitizer";
    if (do_others_queue_signals()) GTEST_SKIP() << "other processes take the places of the queue";
    for (const char* limit : {"0", "1"}) {
        const child_end end = run_short_of("few signals", {limit}, detector());
        EXPECT_TRUE(end.code == 0 || end.code == not_possible) << limit << ": " << end;
    }
}

const child_program few_signals_stops{"few signals, stops", [](const child_arguments& arguments) {
                                          if (!limit_queued_signals(arguments.at(0)))
                                              return not_possible;
                                          return run_on_one_processor({}, [] {
                                              std::vector<ums::fiber> all;
                                              for (int i = 0; i < 4; ++i)
                                                  all.emplace_back([] {
                                                      volatile double sink = 1;
                                                      for (int k = 0; k < 30; ++k) {
                                                          usleep(300);
                                                          // Long enough to be stopped.
                                                          for (int n = 0; n < 1'000'000; ++n)
                                                              sink = sink + n;
                                                      }
                                                  });
                                              for (ums::fiber& one : all) one.join();
                                          });
                                      }};

// The kernel sends SIGIO in place of a signal that it cannot queue.
TEST_P(shortage, stops_do_not_end_the_program_where_no_signals_are_queued) {
    for (const char* limit : {"0", "1"}) {
        const child_end end = run_short_of("few signals, stops", {limit}, detector());
        if (end.code == not_possible) GTEST_SKIP() << "not possible here";
        EXPECT_EQ(end.code, 0) << limit << ": " << end;
        EXPECT_LE(end.err_lines(), 1U) << limit << ": " << end;
    }
}

// --- No /proc ---

const child_program no_detector{"no detector", [](const child_arguments&) {
                                    char folder[] = "/tmp/ums_no_proc_XXXXXX";
                                    if (::mkdtemp(folder) == nullptr) return not_possible;
                                    if (::chroot(folder) != 0 || ::chdir("/") != 0) {
                                        ::rmdir(folder);
                                        return not_possible;
                                    }
                                    return run_on_one_processor({}, [] { usleep(1000); });
                                }};

// Without /proc, LeakSanitizer cannot look.
constexpr std::pair<const char*, const char*> no_leak_check{"ASAN_OPTIONS", "detect_leaks=0"};

class no_detector_test : public conserving_test {};

TEST_F(no_detector_test, a_runtime_that_cannot_find_blocks_says_so_in_one_line) {
    const child_end end = run_short_of("no detector", {}, {no_leak_check});
    if (end.code == not_possible) GTEST_SKIP() << "not root, or no filters here";
    EXPECT_EQ(end.code, 0) << end;
    EXPECT_EQ(end.err_lines(), 1U) << end;
    EXPECT_EQ(end.err.rfind("ums: ", 0), 0U) << end;
}

TEST_F(no_detector_test, one_that_was_told_not_to_look_says_nothing) {
    const child_end end = run_short_of("no detector", {}, {no_leak_check, {"UMS_BLOCK", "off"}});
    if (end.code == not_possible) GTEST_SKIP() << "not root, or no filters here";
    EXPECT_EQ(end.code, 0) << end;
    EXPECT_EQ(end.err, "");
}

}  // namespace
