// SPDX-License-Identifier: MIT
#pragma once

// support/child.hpp: what a test expects to kill the program runs in a child process.
//
//   const child_program overflow{"overflow", [](const child_arguments& a) { ...; return 0; }};
//   TEST(...) { const child_end end = run_child("overflow", {"64"}); EXPECT_EQ(end.signal,
//   SIGSEGV); }
//
// The child is this same program, executed anew: forking a process that has threads (a sanitizer's
// included) and going on in it is not safe.
//
// A child that hangs is killed after `limit`, a generous one, and fails the test that waits for it.
// TEST_CHILD_SECONDS=n sets another limit for all of them.

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <map>
#include <optional>
#include <poll.h>
#include <spawn.h>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

using child_arguments = std::vector<std::string>;
using child_function = std::function<int(const child_arguments&)>;
using child_environment = std::vector<std::pair<std::string, std::string>>;

struct child_program {
    child_program(const char* called, child_function does) : name{called}, run{std::move(does)} {
        // Several files may share a program, see support/main.cpp.
        if (find(name) != nullptr) {
            std::fprintf(stderr, "two child programs are called %s\n", called);
            std::abort();
        }
        next = std::exchange(first, this);
    }

    static const child_program* find(const std::string& wanted) {
        const child_program* at = first;
        while (at != nullptr && at->name != wanted) at = at->next;
        return at;
    }

    const std::string name;
    const child_function run;
    const child_program* next;
    // Not a map in an inline function: gcc and clang give its variable different names, and a
    // program may have been compiled by both.
    static inline const child_program* first = nullptr;
};

// How a child ended. Exactly one of code and signal is not negative.
struct child_end {
    int code = -1;
    int signal = -1;
    bool has_hung = false;  // It was killed because it took longer than its limit.
    std::string err;        // All it wrote to standard error.

    [[nodiscard]] std::size_t err_lines() const {
        std::size_t n = 0;
        for (const char c : err) n += c == '\n';
        return n;
    }
    friend std::ostream& operator<<(std::ostream& out, const child_end& end) {
        if (end.has_hung) out << "hung, ";
        return out << "exit code " << end.code << ", signal " << end.signal << ", standard error:\n"
                   << end.err;
    }
};

// Runs a child to its end. Its environment is this process's, without the variables UMS_*, and with
// `set`, which takes precedence. An entry of `set` that is already set and ends in _OPTIONS is
// appended to.
inline child_end run_child(const std::string& name, const child_arguments& arguments = {},
                           const child_environment& set = {},
                           std::chrono::seconds limit = std::chrono::seconds{300}) {
    using clock = std::chrono::steady_clock;
    if (const char* wanted = std::getenv("TEST_CHILD_SECONDS"))
        limit = std::chrono::seconds{std::atoi(wanted)};
    std::map<std::string, std::string> variables;
    for (char** at = environ; *at != nullptr; ++at) {
        const char* equals = std::strchr(*at, '=');
        if (equals == nullptr || std::strncmp(*at, "UMS_", 4) == 0) continue;
        variables[std::string(*at, static_cast<std::size_t>(equals - *at))] = equals + 1;
    }
    for (const auto& [variable, value] : set) {
        std::string& now = variables[variable];
        const bool is_list = variable.size() > 8 && variable.ends_with("_OPTIONS") && !now.empty();
        now = is_list ? now + ":" + value : value;
    }

    std::vector<std::string> strings{"/proc/self/exe", "--child", name};
    strings.insert(strings.end(), arguments.begin(), arguments.end());
    const std::size_t argc = strings.size();
    for (const auto& [variable, value] : variables) strings.push_back(variable + "=" + value);
    std::vector<char*> argv, envp;
    for (std::size_t i = 0; i < strings.size(); ++i)
        (i < argc ? argv : envp).push_back(strings[i].data());
    argv.push_back(nullptr);
    envp.push_back(nullptr);

    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    pid_t pid = -1;
    const int failed =
        posix_spawn(&pid, "/proc/self/exe", &actions, nullptr, argv.data(), envp.data());
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    child_end end;
    if (failed != 0) {
        ADD_FAILURE() << "posix_spawn: " << std::strerror(failed);
        ::close(ends[0]);
        return end;
    }
    char buffer[4096];
    for (const auto last = clock::now() + limit;;) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(last - clock::now());
        pollfd output{ends[0], POLLIN, 0};
        if (left <= left.zero() || ::poll(&output, 1, static_cast<int>(left.count())) == 0) {
            end.has_hung = true;
            ADD_FAILURE() << "the child " << name << " hung: it was killed after " << limit.count()
                          << " s";
            ::kill(pid, SIGKILL);
            break;
        }
        const ssize_t n = ::read(ends[0], buffer, sizeof buffer);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        end.err.append(buffer, static_cast<std::size_t>(n));
    }
    ::close(ends[0]);
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status)) end.code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
    return end;
}

// The exit code of the child program, where main()'s arguments ask for one.
inline std::optional<int> child_code(int argc, char** argv) {
    if (argc < 3 || std::strcmp(argv[1], "--child") != 0) return {};
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
    const child_program* const found = child_program::find(argv[2]);
    if (found == nullptr) {
        std::fprintf(stderr, "no such child program: %s\n", argv[2]);
        return 99;
    }
    return found->run(child_arguments(argv + 3, argv + argc));
}
