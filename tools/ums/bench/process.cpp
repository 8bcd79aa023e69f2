// SPDX-License-Identifier: MIT
#include "process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <system_error>

#include "../interrupt.hpp"

extern "C" char** environ;

namespace tool {

namespace {

[[noreturn]] void fail(const char* call) {
    throw std::system_error{errno, std::generic_category(), call};
}

class descriptor {
public:
    descriptor() = default;
    explicit descriptor(int number) : number_{number} {}
    descriptor(descriptor&& other) noexcept : number_{std::exchange(other.number_, -1)} {}
    descriptor& operator=(descriptor&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    ~descriptor() {
        if (number_ >= 0) close(number_);
    }
    int number() const { return number_; }

private:
    int number_ = -1;
};

struct pipe_ends {
    descriptor read, write;
};

pipe_ends make_pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) fail("pipe");
    return {descriptor{ends[0]}, descriptor{ends[1]}};
}

// Everything that the child needs, allocated before the fork.
class launch_plan {
public:
    explicit launch_plan(const command& what) : program_{what.program} {
        argv_.push_back(program_.data());
        args_ = what.args;
        for (auto& arg : args_) argv_.push_back(arg.data());
        argv_.push_back(nullptr);

        for (const auto& [key, value] : what.environment) added_.push_back(key + "=" + value);
        for (char** one = environ; *one != nullptr; ++one)
            if (!is_replaced(*one, what)) envp_.push_back(*one);
        for (auto& one : added_) envp_.push_back(one.data());
        envp_.push_back(nullptr);

        assert(std::is_sorted(what.cpus.begin(), what.cpus.end()) &&
               "the last CPU is not the highest");
        const int most = what.cpus.empty() ? 1 : what.cpus.back() + 1;
        set_.reset(CPU_ALLOC(most));
        set_bytes_ = CPU_ALLOC_SIZE(most);
        CPU_ZERO_S(set_bytes_, set_.get());
        for (const int cpu : what.cpus) CPU_SET_S(cpu, set_bytes_, set_.get());
        is_confined_ = !what.cpus.empty();
    }

    // Runs in the child, so it uses only calls that are safe between fork and exec.
    [[noreturn]] void become(int out, int err) {
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(out, STDOUT_FILENO);
        dup2(err, STDERR_FILENO);
        sigprocmask(SIG_SETMASK, &interruptible_mask(), nullptr);
        if (is_confined_ && sched_setaffinity(0, set_bytes_, set_.get()) != 0)
            give_up("sched_setaffinity");
        execve(program_.c_str(), argv_.data(), envp_.data());
        give_up(program_.c_str());
    }

private:
    static bool is_replaced(const char* entry, const command& what) {
        for (const auto& [key, value] : what.environment)
            if (std::strncmp(entry, key.c_str(), key.size()) == 0 && entry[key.size()] == '=')
                return true;
        return false;
    }

    [[noreturn]] static void give_up(const char* call) {
        const char* const why = strerrordesc_np(errno);
        for (const char* text : {call, ": ", why, "\n"})
            if (write(STDERR_FILENO, text, std::strlen(text)) < 0) break;
        _exit(127);
    }

    struct free_set {
        void operator()(cpu_set_t* set) const { CPU_FREE(set); }
    };

    std::string program_;
    std::vector<std::string> args_, added_;
    std::vector<char*> argv_, envp_;
    std::unique_ptr<cpu_set_t, free_set> set_;
    std::size_t set_bytes_ = 0;
    bool is_confined_ = false;
};

// Reads what is there. Returns false at the end of the stream.
bool drain(int from, std::string& to) {
    // No peer has that much to say, and a broken peer must not fill the memory.
    constexpr std::size_t most = 1 << 20;
    char buffer[4096];
    for (;;) {
        const auto n = read(from, buffer, sizeof buffer);
        if (n < 0) return errno == EAGAIN || errno == EINTR;
        if (n == 0) return false;
        if (to.size() < most) to.append(buffer, static_cast<std::size_t>(n));
    }
}

class child {
public:
    explicit child(pid_t pid)
        : pid_{pid}, handle_{static_cast<int>(syscall(SYS_pidfd_open, pid, 0))} {
        if (handle_.number() < 0) {
            const int error = errno;
            end();
            throw std::system_error{error, std::generic_category(), "pidfd_open"};
        }
    }
    ~child() {
        if (pid_ > 0) end();
    }
    child(const child&) = delete;
    child& operator=(const child&) = delete;

    // Readable once the child has exited.
    int handle() const { return handle_.number(); }

    int end() {
        assert(pid_ > 0 && "the signal would go to the command's own group");
        kill(-pid_, SIGKILL);
        kill(pid_, SIGKILL);  // In case the child has not reached setpgid() yet.
        return wait();
    }

    int wait() {
        int status = 0;
        assert(pid_ > 0 && "a program is waited for twice");
        while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
        }
        pid_ = 0;
        return status;
    }

private:
    pid_t pid_;
    descriptor handle_;
};

}  // namespace

outcome run(const command& what) {
    using clock = std::chrono::steady_clock;
    launch_plan plan{what};
    auto out = make_pipe();
    auto err = make_pipe();
    const auto begin = clock::now();
    const auto elapsed_s = [&] {
        return std::chrono::duration<double>{clock::now() - begin}.count();
    };

    const pid_t pid = fork();
    if (pid < 0) fail("fork");
    if (pid == 0) plan.become(out.write.number(), err.write.number());
    child peer{pid};
    out.write = {};
    err.write = {};
    for (const int end : {out.read.number(), err.read.number()}) fcntl(end, F_SETFL, O_NONBLOCK);

    outcome result;
    pollfd watched[] = {
        {peer.handle(), POLLIN, 0}, {out.read.number(), POLLIN, 0}, {err.read.number(), POLLIN, 0}};
    std::string* const texts[] = {nullptr, &result.out, &result.err};
    for (;;) {
        const double left = what.timeout_s - elapsed_s();
        if (left <= 0) {
            result.timed_out = true;
            result.status = peer.end();
            break;
        }
        timespec wait{};
        wait.tv_sec = static_cast<time_t>(left);
        wait.tv_nsec = static_cast<long>((left - static_cast<double>(wait.tv_sec)) * 1e9);
        const int ready = ppoll(watched, std::size(watched), &wait, &interruptible_mask());
        if (ready < 0 && errno != EINTR) fail("ppoll");
        if (interrupt_signal() != 0)
            throw interrupted{interrupt_signal()};  // ~child() ends the peer.
        if (ready <= 0) continue;
        for (const int i : {1, 2})
            if (watched[i].revents != 0 && !drain(watched[i].fd, *texts[i])) watched[i].fd = -1;
        if (watched[0].revents != 0) {
            result.status = peer.wait();
            for (const int i : {1, 2})
                if (watched[i].fd >= 0) drain(watched[i].fd, *texts[i]);
            break;
        }
    }
    result.seconds = elapsed_s();
    return result;
}

}  // namespace tool
