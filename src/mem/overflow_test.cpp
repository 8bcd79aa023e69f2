// SPDX-License-Identifier: MIT
#include "mem/overflow.hpp"

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include "support/child.hpp"
#include "support/conservation.hpp"
#include "support/scale.hpp"
#include "support/seed.hpp"
#include "ums/ums.hpp"

namespace {

using namespace ums;

// AddressSanitizer handles SIGSEGV itself, and has a part of its own in each frame.
const child_environment without_sanitizers_handlers = {
    {"ASAN_OPTIONS", "handle_segv=0:handle_sigbus=0:detect_stack_use_after_return=0"},
    {"TSAN_OPTIONS", "handle_segv=0:handle_sigbus=0"},
};

ums::guard_kind guard_named(const std::string& name) {
    return name == "mprotect" ? ums::guard_kind::mprotect : ums::guard_kind::lightweight;
}

// --- a fiber that uses more than its stack ---

// Uses frames of about `bytes` bytes, and writes somewhere into each.
[[gnu::noinline]] int descend(std::mt19937_64& rng, std::size_t bytes, long depth) {
    auto* frame = static_cast<volatile char*>(__builtin_alloca(bytes));
    frame[rng() % bytes] = static_cast<char>(depth);
    if (depth == 0) return 0;
    const int below = descend(rng, bytes, depth - 1);
    return below + frame[0];  // No tail call.
}

// Arguments: seed guard stack_bytes frame_bytes
const child_program overflows{
    "overflows", [](const child_arguments& a) {
        std::mt19937_64 rng{std::stoull(a.at(0))};
        const std::size_t stack = std::stoul(a.at(2)), frame = std::stoul(a.at(3));
        run({.processors = 2, .guard = guard_named(a.at(1))}, [&] {
            // Other fibers around it, at work and asleep.
            std::vector<fiber> others;
            std::atomic<bool> done = false;
            for (auto n = rng() % 20; n > 0; --n)
                others.emplace_back([&] {
                    while (!done) this_fiber::yield();
                });
            fiber deep{{.name = "the deep one", .stack_bytes = stack}, [&] {
                           // First goes as deep as is certainly allowed, which must do no harm.
                           if (const std::size_t allowed = stack / 4 / (frame + 512); allowed != 0)
                               descend(rng, frame, static_cast<long>(rng() % allowed));
                           this_fiber::yield();
                           std::fprintf(stderr, "expect: fiber %lu \"the deep one\"\n",
                                        static_cast<unsigned long>(this_fiber::get_id().value()));
                           descend(rng, frame, static_cast<long>(stack / frame + 100));
                           std::fprintf(stderr, "still alive\n");
                       }};
            deep.join();
            done = true;
            for (fiber& f : others) f.join();
        });
        return 0;
    }};

class overflow_test : public ::testing::TestWithParam<const char*> {
protected:
    void SetUp() override {
        if (std::string{GetParam()} == "lightweight" && !mem::has_lightweight_guards())
            GTEST_SKIP() << "the kernel has no MADV_GUARD_INSTALL";
    }
};

INSTANTIATE_TEST_SUITE_P(guards, overflow_test, ::testing::Values("lightweight", "mprotect"),
                         [](const auto& kind) { return std::string{kind.param}; });

TEST_P(overflow_test, an_overflow_dies_by_the_signal_after_a_report_with_name_id_and_size) {
    std::mt19937_64 rng{test_seed()};
    child_environment variables = without_sanitizers_handlers;
    variables.emplace_back("PATH", "");  // A hundred times addr2line would take half a minute.
    for (int round = 0; round < scaled(100, 50); ++round) {
        const std::size_t stack = std::size_t{16 * 1024} << rng() % 7;
        const std::size_t frame = 16u << rng() % 12 | rng() % 4'000;  // Less than the guard.
        const child_end end = run_child(
            "overflows",
            {std::to_string(rng()), GetParam(), std::to_string(stack), std::to_string(frame)},
            variables);
        SCOPED_TRACE(::testing::Message()
                     << "stack " << stack << ", frames of " << frame << ", " << end);
        ASSERT_EQ(end.signal, SIGSEGV);
        const std::string expect = "expect: ";
        const std::size_t at = end.err.find(expect);
        ASSERT_EQ(at, 0u);
        const std::string who = end.err.substr(expect.size(), end.err.find('\n') - expect.size());
        const std::string report =
            "ums: stack overflow in " + who + ": its stack has " + std::to_string(stack) + " bytes";
        ASSERT_NE(end.err.find(report), end.err.npos) << report;
        ASSERT_EQ(end.err.find("still alive"), end.err.npos);
        // The backtrace continues from the handler's frames to the fiber's, down to its first.
        std::size_t frames = 0;
        for (std::size_t i = 0; (i = end.err.find("  #", i + 1)) != end.err.npos;) ++frames;
        ASSERT_GE(frames, 4u);
        // The recursion is one line, and a count.
        ASSERT_LT(frames, 20u);
        if (stack / frame > 40) {
            ASSERT_NE(end.err.find(" times more\n"), end.err.npos);
        }
    }
}

const child_program without_a_name{
    "without_a_name", [](const child_arguments& a) {
        std::mt19937_64 rng{1};
        run({.stack_bytes = 32 * 1024, .guard = guard_named(a.at(0))},
            [&] { fiber{[&] { descend(rng, 500, 1'000); }}.join(); });
        return 0;
    }};

TEST_P(overflow_test, the_report_of_a_fiber_without_a_name_has_its_id_and_the_default_size) {
    const child_end end = run_child("without_a_name", {GetParam()}, without_sanitizers_handlers);
    EXPECT_EQ(end.signal, SIGSEGV) << end;
    EXPECT_EQ(end.err.find("ums: stack overflow in fiber "), 0u) << end;
    EXPECT_NE(end.err.find(": its stack has 32768 bytes"), end.err.npos) << end;
    // Where the fiber was spawned.
    const std::size_t at = end.err.find("spawned at\n");
    ASSERT_NE(at, end.err.npos) << end;
    EXPECT_NE(end.err.find("  0x", at), end.err.npos) << end;
}

const child_program in_the_second_runtime{
    "in_the_second_runtime", [](const child_arguments& a) {
        std::mt19937_64 rng{1};
        const options chosen{.guard = guard_named(a.at(0))};
        run(chosen, [] { fiber{[] {}}.join(); });
        run(chosen, [&] { fiber{{.name = "second"}, [&] { descend(rng, 5'000, 1'000); }}.join(); });
        return 0;
    }};

TEST_P(overflow_test, is_reported_after_a_restart_too) {
    const child_end end =
        run_child("in_the_second_runtime", {GetParam()}, without_sanitizers_handlers);
    EXPECT_EQ(end.signal, SIGSEGV) << end;
    EXPECT_NE(end.err.find("\"second\": its stack has 262144 bytes"), end.err.npos) << end;
}

const child_program handled_before{
    "handled_before", [](const child_arguments& a) {
        struct sigaction mine {};
        mine.sa_handler = [](int) { ::_exit(42); };
        sigaction(SIGSEGV, &mine, nullptr);
        std::mt19937_64 rng{1};
        run({.guard = guard_named(a.at(0))}, [&] {
            fiber{{.name = "deep"}, [&] { descend(rng, 500, 1'000); }}.join();
        });
        return 0;
    }};

TEST_P(overflow_test, is_reported_although_the_application_has_a_handler_of_its_own) {
    const child_end end = run_child("handled_before", {GetParam()}, without_sanitizers_handlers);
    EXPECT_EQ(end.signal, SIGSEGV) << end;
    EXPECT_NE(end.err.find("\"deep\": its stack has"), end.err.npos) << end;
}

// --- faults that are not an overflow ---

void* volatile forbidden_page;

void fault() { *static_cast<volatile char*>(forbidden_page) = 1; }

void make_forbidden_page() {
    forbidden_page = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

// Arguments: where handler
const child_program faults{
    "faults", [](const child_arguments& a) {
        make_forbidden_page();
        struct sigaction mine {};
        const std::string& handler = a.at(1);
        if (handler == "simple") {
            mine.sa_handler = [](int number) { ::_exit(number == SIGSEGV ? 42 : 43); };
        } else if (handler == "with information") {
            mine.sa_flags = SA_SIGINFO;
            mine.sa_sigaction = [](int number, siginfo_t* info, void* context) {
                ::_exit(number == SIGSEGV && info->si_addr == forbidden_page && context != nullptr
                            ? 42
                            : 43);
            };
        } else if (handler == "repairs") {
            mine.sa_flags = SA_SIGINFO;
            mine.sa_sigaction = [](int, siginfo_t*, void*) {
                ::mprotect(forbidden_page, 4096, PROT_READ | PROT_WRITE);
            };
        } else if (handler == "ignores") {
            mine.sa_handler = SIG_IGN;
        } else {
            mine.sa_handler = SIG_DFL;
        }
        sigaction(SIGSEGV, &mine, nullptr);
        if (a.at(0) == "in a fiber") run([] { fiber{[] { fault(); }}.join(); });
        if (a.at(0) == "in a plain thread") {
            runtime started;
            fault();
        }
        if (a.at(0) == "after the stop") {
            run([] {});
            fault();
        }
        return 41;
    }};

class foreign_fault_test : public ::testing::TestWithParam<const char*> {
protected:
    // The fault is then reported, or mentioned (sched/report/crash_test.cpp).
    static bool in_a_fiber() { return std::string{GetParam()} == "in a fiber"; }
};

INSTANTIATE_TEST_SUITE_P(places, foreign_fault_test,
                         ::testing::Values("in a fiber", "in a plain thread", "after the stop"),
                         [](const auto& where) {
                             std::string name{where.param};
                             for (char& c : name) c = c == ' ' ? '_' : c;
                             return name;
                         });

TEST_P(foreign_fault_test, goes_to_the_applications_handler) {
    for (const char* handler : {"simple", "with information"}) {
        const child_end end =
            run_child("faults", {GetParam(), handler}, without_sanitizers_handlers);
        EXPECT_EQ(end.code, 42) << handler << ": " << end;
        EXPECT_EQ(end.err_lines(), in_a_fiber() ? 1u : 0u) << handler << ": " << end;
    }
}

TEST_P(foreign_fault_test, goes_on_if_the_applications_handler_repairs_it) {
    const child_end end = run_child("faults", {GetParam(), "repairs"}, without_sanitizers_handlers);
    EXPECT_EQ(end.code, 41) << end;
    EXPECT_EQ(end.err_lines(), in_a_fiber() ? 1u : 0u) << end;
}

TEST_P(foreign_fault_test, has_its_default_effect_without_a_handler) {
    for (const char* handler : {"none", "ignores"}) {  // A fault cannot be ignored.
        const child_end end =
            run_child("faults", {GetParam(), handler}, without_sanitizers_handlers);
        EXPECT_EQ(end.signal, SIGSEGV) << handler << ": " << end;
        EXPECT_EQ(end.err.find("ums: SIGSEGV in fiber ") != end.err.npos, in_a_fiber())
            << handler << ": " << end;
    }
}

// The kernel delivers what kill() sends to the process to its first thread, in the middle of
// anything. But ThreadSanitizer calls a handler of SIGSEGV at once, even if the thread is in one of
// its own functions and holds the lock that sigaction() in the handler takes. So under it the first
// thread, which is not a fiber, sends the signal itself.
constexpr bool by_the_first_thread = under_tsan;

// Arguments: how handler
const child_program sent{"sent", [](const child_arguments& a) {
                             if (a.at(1) == "handled")
                                 std::signal(SIGSEGV, [](int) { ::_exit(42); });
                             if (a.at(1) == "ignored") std::signal(SIGSEGV, SIG_IGN);
                             const auto send = [&a] {
                                 if (a.at(0) == "raise") ::raise(SIGSEGV);
                                 if (a.at(0) == "kill") ::kill(::getpid(), SIGSEGV);
                                 this_fiber::yield();
                             };
                             runtime started;
                             if (a.at(0) == "kill" && by_the_first_thread)
                                 send();
                             else
                                 fiber{send}.join();
                             return 41;
                         }};

TEST(foreign_signal, one_that_was_sent_has_the_effect_the_application_chose) {
    for (const char* how : {"raise", "kill"}) {
        const child_end handled = run_child("sent", {how, "handled"}, without_sanitizers_handlers);
        EXPECT_EQ(handled.code, 42) << how << ": " << handled;
        const child_end default_ = run_child("sent", {how, "default"}, without_sanitizers_handlers);
        EXPECT_EQ(default_.signal, SIGSEGV) << how << ": " << default_;
        const child_end ignored = run_child("sent", {how, "ignored"}, without_sanitizers_handlers);
        EXPECT_EQ(ignored.code, 41) << how << ": " << ignored;
    }
}

// --- handlers are put back ---

TEST(overflow_report, leaves_the_applications_handlers_in_place_when_the_runtime_stops) {
    const conservation nothing_left;
    struct sigaction mine {
    }, original{}, now{};
    mine.sa_handler = [](int) {};
    mine.sa_flags = SA_RESTART;
    for (const int number : {SIGSEGV, SIGBUS}) {
        ASSERT_EQ(sigaction(number, &mine, &original), 0);
        run([&] {
            sigaction(number, nullptr, &now);
            EXPECT_NE(now.sa_handler, mine.sa_handler);
        });
        sigaction(number, nullptr, &now);
        EXPECT_EQ(now.sa_handler, mine.sa_handler);
        EXPECT_EQ(now.sa_flags & SA_RESTART, SA_RESTART);
        sigaction(number, &original, nullptr);
    }
}

TEST(overflow_report, does_not_take_away_a_handler_that_was_put_on_top_of_it) {
    const conservation nothing_left;
    struct sigaction original {
    }, mine{}, under{}, now{};
    sigaction(SIGSEGV, nullptr, &original);
    mine.sa_handler = [](int) {};
    run([&] { sigaction(SIGSEGV, &mine, &under); });
    sigaction(SIGSEGV, nullptr, &now);
    EXPECT_EQ(now.sa_handler, mine.sa_handler);
    // After it is removed, the next stop puts back what was there at first.
    sigaction(SIGSEGV, &under, nullptr);
    run([] {});
    sigaction(SIGSEGV, nullptr, &now);
    EXPECT_EQ(now.sa_handler, original.sa_handler);
}

}  // namespace
