// SPDX-License-Identifier: MIT
#include "sched/report/crash.hpp"

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

#include "support/child.hpp"
#include "support/scale.hpp"
#include "ums/ums.hpp"

namespace {

// A sanitizer handles these signals itself.
const child_environment without_sanitizers_handlers = {
    {"ASAN_OPTIONS",
     "handle_segv=0:handle_sigbus=0:handle_abort=0:handle_sigfpe=0:handle_sigill=0"},
    {"TSAN_OPTIONS",
     "handle_segv=0:handle_sigbus=0:handle_abort=0:handle_sigfpe=0:handle_sigill=0"},
    {"UBSAN_OPTIONS", "handle_segv=0:handle_abort=0"},
};

void say(const char* text) { std::fputs(text, stderr); }

[[gnu::noinline]] void go_wrong(const std::string& how) {
    if (how == "segv") {
        raise(SIGSEGV);
    } else if (how == "fault") {
        // The compiler must not know the value.
        volatile std::uintptr_t nowhere = 64;
        *reinterpret_cast<volatile int*>(nowhere) = 1;
    } else if (how == "far below") {
        // As in a frame that is larger than the guard, whose first access lies far below.
        asm volatile(
            "subq $400000, %%rsp\n\t"
            "movl $0, 64\n\t"
            "addq $400000, %%rsp" ::
                : "memory");
    } else if (how == "abort") {
        std::abort();
    } else if (how == "terminate") {
        std::terminate();
    } else if (how == "ill") {
        raise(SIGILL);
    }
}

void own_handler(int) {
    say("the program's handler\n");
    _exit(9);
}
void returning_handler(int) { say("the program's handler\n"); }
void raising_handler(int number) {
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    say(sigismember(&blocked, SIGUSR1) == 1 ? "the program's handler\n"
                                            : "its mask was not heeded\n");
    raise(number);
}

// Arguments: how where handler
const child_program crashes{
    "crashes", [](const child_arguments& a) {
        const std::string how = a.at(0), where = a.at(1), handler = a.at(2);
        if (handler == "exits")
            for (const int number : {SIGSEGV, SIGABRT, SIGILL}) std::signal(number, own_handler);
        if (handler == "returns") std::signal(SIGABRT, returning_handler);
        if (handler == "raises once" || handler == "raises at once") {
            struct sigaction mine {};
            mine.sa_handler = raising_handler;
            mine.sa_flags =
                static_cast<int>(SA_RESETHAND | (handler == "raises at once" ? SA_NODEFER : 0u));
            sigaddset(&mine.sa_mask, SIGUSR1);
            sigaction(SIGABRT, &mine, nullptr);
        }
        if (handler == "terminate")
            std::set_terminate([] {
                say("the program's handler\n");
                std::_Exit(9);
            });
        ums::run({.processors = 2}, [&] {
            if (where == "thread") {
                std::thread{[&] { go_wrong(how); }}.join();
            } else {
                ums::fiber{{.name = "the culprit"},
                           [&] {
                               std::fprintf(
                                   stderr, "expect: fiber %lu \"the culprit\"\n",
                                   static_cast<unsigned long>(ums::this_fiber::get_id().value()));
                               go_wrong(how);
                           }}
                    .join();
            }
            say("still alive\n");
        });
        return 0;
    }};

child_end crash(const std::string& how, const std::string& where, const std::string& handler) {
    return run_child("crashes", {how, where, handler}, without_sanitizers_handlers);
}

std::size_t count(const std::string& in, const std::string& what) {
    std::size_t n = 0;
    for (std::size_t at = 0; (at = in.find(what, at)) != in.npos; at += what.size()) ++n;
    return n;
}

void expect_report(const child_end& end, const std::string& what) {
    SCOPED_TRACE(::testing::Message() << what << ": " << end);
    const std::string expect = "expect: ";
    ASSERT_EQ(end.err.find(expect), 0u);
    const std::string who = end.err.substr(expect.size(), end.err.find('\n') - expect.size());
    EXPECT_EQ(count(end.err, "ums: " + what + " in " + who + ", which fiber "), 1u);
    EXPECT_EQ(count(end.err, "ums: "), 1u);
    EXPECT_EQ(count(end.err, "start function\n"), 1u);
    EXPECT_EQ(count(end.err, "spawned at\n"), 1u);
    EXPECT_GE(count(end.err, "  #"), 4u);  // The fiber's frames, down to its first.
    EXPECT_EQ(count(end.err, "still alive"), 0u);
}

// Before the program's handler runs.
void expect_line(const child_end& end, const std::string& what) {
    SCOPED_TRACE(::testing::Message() << what << ": " << end);
    const std::string expect = "expect: ";
    ASSERT_EQ(end.err.find(expect), 0u);
    const std::string who = end.err.substr(expect.size(), end.err.find('\n') - expect.size());
    const std::string line =
        "ums: " + what + " in " + who + "; the program's handler is called next\n";
    EXPECT_EQ(count(end.err, line), 1u);
    EXPECT_EQ(count(end.err, "ums: "), 1u);
    EXPECT_EQ(count(end.err, "#"), 0u);
}

TEST(crash_test, a_signal_in_a_fiber_is_reported_and_ends_the_program_as_it_would) {
    const struct {
        const char* how;
        const char* what;
        int signal;
    } all[] = {{"segv", "SIGSEGV", SIGSEGV},
               {"fault", "SIGSEGV", SIGSEGV},
               {"abort", "SIGABRT", SIGABRT},
               {"ill", "SIGILL", SIGILL}};
    for (const auto& one : all) {
        const child_end end = crash(one.how, "fiber", "none");
        EXPECT_EQ(end.signal, one.signal) << end;
        expect_report(end, one.what);
    }
}

// The directory of a script in the place of addr2line.
class tool_folder {
public:
    explicit tool_folder(const std::string& script) {
        path_ = ::mkdtemp(name_);
        std::ofstream{tool()} << "#!/bin/sh\n" << script << "\n";
        ::chmod(tool().c_str(), 0700);
    }
    ~tool_folder() {
        ::unlink(tool().c_str());
        ::rmdir(path_.c_str());
    }
    tool_folder(const tool_folder&) = delete;
    tool_folder& operator=(const tool_folder&) = delete;
    [[nodiscard]] const std::string& path() const { return path_; }

private:
    [[nodiscard]] std::string tool() const { return path_ + "/addr2line"; }
    char name_[32] = "/tmp/ums-crash-test-XXXXXX";
    std::string path_;
};

bool has_helper() { return !under_tsan && ::access("/usr/bin/addr2line", X_OK) == 0; }

child_end crash_with_path(const std::string& path) {
    child_environment variables = without_sanitizers_handlers;
    variables.emplace_back("PATH", path);
    return run_child("crashes", {"fault", "fiber", "none"}, variables);
}

TEST(crash_test, the_report_has_functions_files_and_lines) {
    if (!has_helper()) GTEST_SKIP() << "there is no addr2line here, or ThreadSanitizer";
    const child_end end = crash_with_path("/usr/bin:/bin");
    EXPECT_EQ(end.signal, SIGSEGV) << end;
    expect_report(end, "SIGSEGV");
    // The first frame is where it went wrong, not the handler.
    const std::size_t first = end.err.find("  #0 0x");
    ASSERT_NE(first, end.err.npos) << end;
    const std::string line = end.err.substr(first, end.err.find('\n', first) - first);
    EXPECT_NE(line.find("go_wrong("), line.npos) << end;
    EXPECT_NE(line.find("crash_test.cpp:"), line.npos) << end;
    EXPECT_NE(end.err.find("crash_test.cpp:", end.err.find("spawned at\n")), end.err.npos) << end;
    EXPECT_EQ(count(end.err, "source lines: "), 0u) << end;
}

TEST(crash_test, without_a_helper_the_report_has_its_command) {
    const child_end end = crash_with_path("/nowhere");
    EXPECT_EQ(end.signal, SIGSEGV) << end;
    expect_report(end, "SIGSEGV");
    char program[4096];
    const ssize_t n = ::readlink("/proc/self/exe", program, sizeof program);
    ASSERT_GT(n, 0);
    EXPECT_NE(end.err.find("source lines: addr2line -Cfipe '" +
                           std::string(program, static_cast<std::size_t>(n)) + "' 0x"),
              end.err.npos)
        << end;
}

// Arguments: what the filter does about clone(2).
const child_program filtered{
    "filtered", [](const child_arguments& a) {
        ums::run({.processors = 1}, [&] {
            ums::fiber{[&] {
                const unsigned then =
                    a.at(0) == "kill" ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ALLOW;
                sock_filter code[] = {
                    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 1),
                    BPF_STMT(BPF_RET | BPF_K, then),
                    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
                };
                const sock_fprog all{4, code};
                if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
                    ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all) != 0)
                    ::_exit(77);
                go_wrong("fault");
            }}.join();
        });
        return 0;
    }};

TEST(crash_test, a_filter_that_kills_for_the_helper_leaves_a_report) {
    if (!has_helper()) GTEST_SKIP() << "there is no addr2line here, or ThreadSanitizer";
    for (const char* const then : {"kill", "allow"}) {
        const child_end end = run_child("filtered", {then}, without_sanitizers_handlers);
        if (end.code == 77) GTEST_SKIP() << "no filter can be set here";
        const bool is_allowed = then == std::string{"allow"};
        EXPECT_EQ(end.signal, is_allowed ? SIGSEGV : SIGSYS) << end;
        EXPECT_EQ(count(end.err, "start function\n"), is_allowed ? 2u : 1u) << end;
        EXPECT_GE(count(end.err, "source lines: addr2line "), 1u) << end;
        EXPECT_EQ(count(end.err, "crash_test.cpp:") != 0, is_allowed) << end;
    }
}

TEST(crash_test, a_helper_that_hangs_is_ended) {
    const tool_folder slow{"exec sleep 1000000"};
    const child_end end = crash_with_path(slow.path() + ":/usr/bin:/bin");
    EXPECT_EQ(end.signal, SIGSEGV) << end;
    expect_report(end, "SIGSEGV");
    EXPECT_GE(count(end.err, "source lines: addr2line "), 1u) << end;
}

TEST(crash_test, a_helper_that_says_too_much_or_nothing_does_no_harm) {
    for (const char* const script : {"exec head -c 1000000 /dev/zero", "exit 1",
                                     "for i in 1 2 3 4 5 6 7 8 9; do echo 0x1: ; done"}) {
        const tool_folder odd{script};
        const child_end end = crash_with_path(odd.path() + ":/usr/bin:/bin");
        EXPECT_EQ(end.signal, SIGSEGV) << end;
        expect_report(end, "SIGSEGV");
    }
}

TEST(crash_test, a_stack_pointer_below_the_stack_is_reported) {
    const child_end end = crash("far below", "fiber", "none");
    EXPECT_EQ(end.signal, SIGSEGV) << end;
    EXPECT_EQ(count(end.err, "ums: SIGSEGV in fiber "), 1u) << end;
    EXPECT_EQ(count(end.err, "ums: its stack pointer is 1"), 1u) << end;
    EXPECT_EQ(count(end.err, " bytes below its stack, which has "), 1u) << end;
}

TEST(crash_test, terminate_in_a_fiber_is_reported_once) {
    const child_end end = crash("terminate", "fiber", "none");
    EXPECT_EQ(end.signal, SIGABRT) << end;
    expect_report(end, "std::terminate()");
}

TEST(crash_test, the_report_comes_before_what_the_program_has_installed) {
    for (const char* how : {"segv", "fault", "abort", "ill"}) {
        const child_end end = crash(how, "fiber", "exits");
        EXPECT_EQ(end.code, 9) << end;
        expect_line(end, how == std::string{"abort"} ? "SIGABRT"
                         : how == std::string{"ill"} ? "SIGILL"
                                                     : "SIGSEGV");
        EXPECT_LT(end.err.find("ums: SIG"), end.err.find("the program's handler\n")) << end;
        EXPECT_EQ(count(end.err, "the program's handler\n"), 1u) << end;
    }
    const child_end terminated = crash("terminate", "fiber", "terminate");
    EXPECT_EQ(terminated.code, 9) << terminated;
    EXPECT_LT(terminated.err.find("ums: std::terminate()"),
              terminated.err.find("the program's handler"))
        << terminated;
    // abort() continues after a handler that returns.
    const child_end aborted = crash("abort", "fiber", "returns");
    EXPECT_EQ(aborted.signal, SIGABRT) << aborted;
    EXPECT_EQ(count(aborted.err, "the program's handler\n"), 1u) << aborted;
    expect_line(aborted, "SIGABRT");
}

const child_program two_crash{"two_crash", [](const child_arguments& a) {
                                  ums::run({.processors = 2}, [&] {
                                      std::atomic<int> there = 0;
                                      const auto die = [&](const std::string& how) {
                                          ++there;
                                          while (there < 2) {
                                          }
                                          go_wrong(how);
                                      };
                                      ums::fiber one{[&] { die(a.at(0)); }},
                                          other{[&] { die(a.at(1)); }};
                                      one.join();
                                      other.join();
                                  });
                                  return 0;
                              }};

void* volatile forbidden_page;

const child_program repairs{
    "repairs", [](const child_arguments&) {
        forbidden_page = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        struct sigaction mine {};
        mine.sa_handler = [](int) { ::mprotect(forbidden_page, 4096, PROT_READ | PROT_WRITE); };
        sigaction(SIGSEGV, &mine, nullptr);
        ums::run({.processors = 1}, [] {
            ums::fiber{{.name = "the culprit"},
                       [] {
                           for (int n = 0; n < 100; ++n) {
                               ::mprotect(forbidden_page, 4096, PROT_NONE);
                               *static_cast<volatile char*>(forbidden_page) = 1;
                           }
                           std::abort();
                       }}
                .join();
        });
        return 0;
    }};

TEST(crash_test, faults_that_the_program_repairs_leave_the_report_to_the_crash) {
    const child_end end = run_child("repairs", {}, without_sanitizers_handlers);
    EXPECT_EQ(end.signal, SIGABRT) << end;
    EXPECT_EQ(count(end.err, "ums: SIGSEGV in fiber "), 16u) << end;
    EXPECT_EQ(count(end.err, "ums: SIGABRT in fiber "), 1u) << end;
    EXPECT_EQ(count(end.err, "start function\n"), 1u) << end;
}

TEST(crash_test, of_two_fibers_at_once_one_is_reported_in_full) {
    for (int round = 0; round < 20; ++round) {
        const child_end end =
            run_child("two_crash", {"fault", round % 2 == 0 ? "fault" : "terminate"},
                      without_sanitizers_handlers);
        EXPECT_GT(end.signal, 0) << end;
        EXPECT_EQ(count(end.err, "ums: "), 1u) << end;
        EXPECT_EQ(count(end.err, "start function\n  0x"), 1u) << end;
        EXPECT_EQ(count(end.err, "spawned at\n  0x"), 1u) << end;
    }
}

TEST(crash_test, a_handler_that_is_to_be_called_once_is_called_once_with_its_mask) {
    for (const char* where : {"fiber", "thread"})
        for (const char* handler : {"raises once", "raises at once"}) {
            const child_end end = crash("abort", where, handler);
            EXPECT_EQ(end.signal, SIGABRT) << end;
            EXPECT_EQ(count(end.err, "the program's handler\n"), 1u) << end;
        }
}

TEST(crash_test, a_plain_thread_is_none_of_ours) {
    for (const char* how : {"segv", "fault", "abort", "ill", "terminate"}) {
        const child_end end = crash(how, "thread", "none");
        EXPECT_GT(end.signal, 0) << end;
        EXPECT_EQ(count(end.err, "ums: "), 0u) << end;
    }
}

}  // namespace
