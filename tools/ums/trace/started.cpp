// SPDX-License-Identifier: MIT
#include "started.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace tool::tracing {

started::started(const std::vector<std::string>& command, const std::string& variable) {
    assert(!command.empty() && "there is no program to start");
    int go[2], failed[2];
    if (pipe2(go, O_CLOEXEC) != 0 || pipe2(failed, O_CLOEXEC) != 0)
        throw std::runtime_error{fmt::format("pipe: {}", std::strerror(errno))};
    std::vector<char*> words;
    for (const std::string& w : command) words.push_back(const_cast<char*>(w.c_str()));
    words.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
        char c;
        close(go[1]);
        if (read(go[0], &c, 1) != 1) _exit(127);  // The program does not begin before it is seized.
        setenv("UMS_TRACE", variable.c_str(), 1);
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, nullptr);
        execvp(words[0], words.data());
        const int error = errno;
        [[maybe_unused]] const auto n = write(failed[1], &error, sizeof error);
        _exit(127);
    }
    close(go[0]);
    close(failed[1]);
    if (pid_ < 0) throw std::runtime_error{fmt::format("fork: {}", std::strerror(errno))};
    const bool is_seized = ptrace(PTRACE_SEIZE, pid_, nullptr, PTRACE_O_TRACEEXIT) == 0;
    const int seize_error = errno;
    if (is_seized) {
        [[maybe_unused]] const auto n = write(go[1], "", 1);
    }
    close(go[1]);
    int error = 0;
    const bool is_refused = is_seized && read(failed[0], &error, sizeof error) == sizeof error;
    close(failed[0]);
    if (is_seized && !is_refused) return;
    kill(pid_, SIGKILL);
    while (waitpid(pid_, nullptr, __WALL) == pid_ && kill(pid_, 0) == 0)
        ptrace(PTRACE_CONT, pid_, nullptr, nullptr);
    throw std::runtime_error{
        fmt::format("{}: {}", command.front(), std::strerror(is_refused ? error : seize_error))};
}

started::~started() {
    if (!is_gone_) ptrace(PTRACE_DETACH, pid_, nullptr, nullptr);
}

started::is started::look() {
    assert(!is_gone_ && "a program is waited for that has ended: its number may be another's");
    for (;;) {
        int status = 0;
        const int r = waitpid(pid_, &status, WNOHANG | __WALL);
        if (r == 0) return is::running;
        if (r < 0 && errno == EINTR) continue;
        if (r < 0 || WIFEXITED(status) || WIFSIGNALED(status)) {
            is_gone_ = true;
            code_ = r < 0 ? 1 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            return is::gone;
        }
        if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXIT << 8)) return is::exiting;
        const int number = WSTOPSIG(status);
        if (status >> 16 != PTRACE_EVENT_STOP)  // A signal is on its way.
            ptrace(PTRACE_CONT, pid_, nullptr, number);
        else if (number == SIGSTOP || number == SIGTSTP || number == SIGTTIN || number == SIGTTOU)
            // The whole process was stopped, and stays so.
            ptrace(PTRACE_LISTEN, pid_, nullptr, nullptr);
        else  // The end of a stop.
            ptrace(PTRACE_CONT, pid_, nullptr, nullptr);
    }
}

void started::let_go() {
    assert(!is_gone_ && "a program is let go that has ended");
    ptrace(PTRACE_CONT, pid_, nullptr, nullptr);
}

}  // namespace tool::tracing
