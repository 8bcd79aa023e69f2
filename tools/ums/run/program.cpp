// SPDX-License-Identifier: MIT
#include "program.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "../interrupt.hpp"

namespace tool::running {

namespace {

double now_s() {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

double seconds_of(const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
}

// The CPU time of the children that a process has waited for, in user mode and in the kernel.
std::pair<double, double> children_of(int pid) {
    std::ifstream file{fmt::format("/proc/{}/stat", pid)};
    const std::string text{std::istreambuf_iterator<char>{file}, {}};
    // The name before may hold anything.
    std::istringstream in{text.substr(std::min(text.size(), text.rfind(')') + 1))};
    std::string before;
    for (int i = 0; i < 13; ++i) in >> before;
    double user = 0, system = 0;
    in >> user >> system;
    const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
    return {user / ticks, system / ticks};
}

}  // namespace

program::program(const std::vector<std::string>& command) {
    assert(!command.empty() && "there is no program to start");
    catch_interrupts();
    int failed[2];
    if (pipe2(failed, O_CLOEXEC) != 0)
        throw std::runtime_error{fmt::format("pipe: {}", std::strerror(errno))};
    std::vector<char*> words;
    for (const std::string& w : command) words.push_back(const_cast<char*>(w.c_str()));
    words.push_back(nullptr);
    started_ = now_s();
    pid_ = fork();
    if (pid_ == 0) {
        // From here on a signal is the program's.
        for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
            struct sigaction now {};
            sigaction(signal, nullptr, &now);
            if (now.sa_handler != SIG_IGN) std::signal(signal, SIG_DFL);
        }
        sigprocmask(SIG_SETMASK, &interruptible_mask(), nullptr);
        execvp(words[0], words.data());
        const int error = errno;
        [[maybe_unused]] const auto n = write(failed[1], &error, sizeof error);
        _exit(127);
    }
    int error = errno;
    close(failed[1]);
    const bool is_refused = pid_ > 0 && read(failed[0], &error, sizeof error) == sizeof error;
    close(failed[0]);
    if (pid_ > 0 && !is_refused) {
        handle_ = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
        if (handle_ >= 0) return;
        error = errno;
        kill(pid_, SIGKILL);
    }
    if (pid_ > 0) waitpid(pid_, nullptr, 0);
    throw std::runtime_error{fmt::format("{}: {}", command.front(), std::strerror(error))};
}

program::~program() { close(handle_); }

bool program::wait_for(double seconds) {
    assert(status_ == -1 && "a program is waited for that has been collected");
    pollfd end{handle_, POLLIN, 0};
    const timespec most{static_cast<time_t>(seconds),
                        static_cast<long>((seconds - static_cast<double>(time_t(seconds))) * 1e9)};
    const int n = ppoll(&end, 1, &most, &interruptible_mask());
    if (const int signal = take_sent_interrupt(); signal != 0) kill(pid_, signal);
    return n == 1;
}

usage program::collect() {
    assert(status_ == -1 && "a program is collected twice");
    usage all;
    all.seconds = now_s() - started_;
    const auto [children_user, children_system] = children_of(pid_);  // It is a zombie still.
    rusage used{};
    const int collected = wait4(pid_, &status_, 0, &used);
    assert(collected == pid_ && "a program was collected before its end");
    (void)collected;
    all.children_s = children_user + children_system;
    all.user_s = std::max(0.0, seconds_of(used.ru_utime) - children_user);
    all.system_s = std::max(0.0, seconds_of(used.ru_stime) - children_system);
    all.voluntary = static_cast<double>(used.ru_nvcsw);
    all.involuntary = static_cast<double>(used.ru_nivcsw);
    return all;
}

int program::end_alike() const {
    assert(status_ != -1 && "a program's end is asked for before it was collected");
    if (!WIFSIGNALED(status_)) return WEXITSTATUS(status_);
    std::fflush(nullptr);
    const int signal = WTERMSIG(status_);
    // The core, if there is one, is the program's.
    const rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    std::signal(signal, SIG_DFL);
    sigset_t this_one;
    sigemptyset(&this_one);
    sigaddset(&this_one, signal);
    sigprocmask(SIG_UNBLOCK, &this_one, nullptr);
    raise(signal);
    return 128 + signal;
}

}  // namespace tool::running
