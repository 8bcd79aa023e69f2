// SPDX-License-Identifier: MIT
#include "live_process.hpp"

#include <fmt/format.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "printable.hpp"

namespace tool::inspect {

namespace {

[[noreturn]] void refuse(int pid, int error) {
    if (error == ESRCH) throw std::runtime_error{fmt::format("process {} has ended", pid)};
    if (error == EPERM || error == EACCES)
        throw std::runtime_error{fmt::format(
            "process {} may not be looked at: that needs the right to trace it (the same user, or "
            "root; see ptrace(2))",
            pid)};
    throw std::system_error{error, std::generic_category(), fmt::format("process {}", pid)};
}

registers from_user(const user_regs_struct& u) {
    const std::uint64_t values[registers::count] = {u.rax, u.rdx, u.rcx, u.rbx, u.rsi, u.rdi,
                                                    u.rbp, u.rsp, u.r8,  u.r9,  u.r10, u.r11,
                                                    u.r12, u.r13, u.r14, u.r15, u.rip};
    registers r;
    for (unsigned i = 0; i < registers::count; ++i) r.set(i, values[i]);
    return r;
}

// The numbers of a process or thread in the PID namespaces it is in: the one here first, its own
// last.
std::vector<int> numbers_of(const std::string& status) {
    std::vector<int> all;
    std::ifstream file{status};
    for (std::string line; std::getline(file, line);) {
        if (!line.starts_with("NSpid:")) continue;
        std::istringstream in{line.substr(6)};
        for (int one; in >> one;) all.push_back(one);
    }
    return all;
}

// A signal that arrived first is delivered when the thread continues.
bool halt(int tid) {
    errno = 0;
    if (ptrace(PTRACE_SEIZE, tid, nullptr, nullptr) != 0) return false;
    if (ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr) != 0) return false;
    for (;;) {
        int status = 0;
        const int r = waitpid(tid, &status, __WALL);
        if (r < 0 && errno == EINTR) continue;
        if (r != tid || !WIFSTOPPED(status)) return false;
        if (status >> 16 == PTRACE_EVENT_STOP) return true;
        ptrace(PTRACE_CONT, tid, nullptr, WSTOPSIG(status));
    }
}

}  // namespace

live_process::live_process(int pid, bool stop) : pid_{pid} {
    if (pid == 0 || (kill(pid, 0) != 0 && errno == ESRCH))
        throw std::runtime_error{fmt::format("there is no process {}", pid)};
    if (stop) stop_all();
    has_own_numbers_ = numbers_of(proc("status")).size() > 1;
    std::ifstream maps{proc("maps")};
    for (std::string line; std::getline(maps, line);) {
        std::istringstream in{line};
        mapping m;
        std::string rights, device, inode;
        char dash;
        in >> std::hex >> m.begin >> dash >> m.end >> rights >> m.offset >> device >> inode >>
            std::ws;
        std::getline(in, m.path);
        mappings_.push_back(std::move(m));
    }
    if (!mappings_.empty()) return;
    // A kernel thread has no memory, a process that has just ended has none either, and another
    // user's memory is not shown.
    char byte;
    iovec here{&byte, 1}, there{&byte, 1};
    if (process_vm_readv(pid, &here, 1, &there, 1, 0) < 0 && errno != EFAULT) refuse(pid, errno);
    throw std::runtime_error{
        fmt::format("process {} has no memory: it has ended, or is the kernel's", pid)};
}

void live_process::stopped_threads::let_go() {
    for (const int tid : *this) ptrace(PTRACE_DETACH, tid, nullptr, nullptr);
    clear();
}

std::int64_t live_process::let_go() {
    if (stopped_.empty()) return 0;
    stopped_.let_go();
    return now() - stopped_at_;
}

std::string live_process::proc(const std::string& rest) const {
    return fmt::format("/proc/{}/{}", pid_, rest);
}

void live_process::stop_all() {
    assert(stopped_.empty() && "a process is stopped that stands still");
    stopped_at_ = now();
    // Catches threads that are made meanwhile: repeats until a look finds none that still runs.
    for (bool found = true; found;) {
        found = false;
        std::error_code gone;
        for (const auto& entry : std::filesystem::directory_iterator{proc("task"), gone}) {
            const int tid = std::stoi(entry.path().filename().string());
            if (std::find(stopped_.begin(), stopped_.end(), tid) != stopped_.end()) continue;
            if (halt(tid)) {
                stopped_.push_back(tid);
                found = true;
            } else if (errno == EPERM) {
                refuse(pid_, EPERM);
            }
        }
        if (gone) refuse(pid_, ESRCH);
    }
}

void live_process::read(std::span<piece> pieces) const {
    // The kernel may not be preempted during a call, and then the next thread of this CPU has to
    // wait.
    constexpr std::size_t most = 64;
    iovec here[most], there[most];
    for (std::size_t next = 0; next < pieces.size();) {
        const std::size_t n = std::min(most, pieces.size() - next);
        for (std::size_t i = 0; i < n; ++i) {
            const piece& p = pieces[next + i];
            here[i] = {p.into, p.bytes};
            there[i] = {reinterpret_cast<void*>(p.at), p.bytes};
        }
        const ssize_t got = process_vm_readv(pid_, here, n, there, n, 0);
        if (got < 0 && errno != EFAULT && errno != EINVAL && errno != ENOMEM) refuse(pid_, errno);
        // The call ends at the first piece that cannot be read.
        std::size_t left = got < 0 ? 0 : static_cast<std::size_t>(got);
        std::size_t whole = 0;
        while (whole < n && left >= pieces[next + whole].bytes) {
            left -= pieces[next + whole].bytes;
            pieces[next + whole++].is_read = true;
        }
        if (whole < n) pieces[next + whole++].is_read = false;
        assert(whole != 0 && whole <= n && "a call read no piece, or more than it was given");
        next += whole;
    }
}

std::string live_process::title() const {
    std::string name;
    std::getline(std::ifstream{proc("comm")}, name);
    return fmt::format("process {} ({})", pid_, printable(name));
}

// Looks through the process's own root: it may be in a container, and the file may have been
// deleted.
std::string live_process::file_of(const mapping& m) const {
    if (m.path.empty() || m.path[0] != '/') return {};
    std::error_code error;
    if (std::filesystem::read_symlink(proc("exe"), error) == m.path) return proc("exe");
    if (m.path.ends_with(" (deleted)"))  // This needs more rights than tracing does.
        return proc(fmt::format("map_files/{:x}-{:x}", m.begin, m.end));
    return proc("root" + m.path);
}

std::optional<thread_state> live_process::thread(int tid) const {
    thread_state t;
    t.tid = tid;
    std::string line;
    if (!std::getline(std::ifstream{proc(fmt::format("task/{}/stat", tid))}, line)) return {};
    const std::size_t end = line.rfind(')');
    if (end != std::string::npos && end + 2 < line.size()) t.state = line[end + 2];
    if (std::find(stopped_.begin(), stopped_.end(), tid) != stopped_.end()) {
        user_regs_struct user;
        if (ptrace(PTRACE_GETREGS, tid, nullptr, &user) == 0) {
            t.at = from_user(user);
            t.call = static_cast<long>(user.orig_rax);
            t.state = *t.call >= 0 ? 'S' : 'R';  // By now the state is 't'.
        }
        return t;
    }
    // The text is "running"; or the call's number, six arguments, sp and ip; or -1 and the last two
    // outside a call.
    if (!std::getline(std::ifstream{proc(fmt::format("task/{}/syscall", tid))}, line)) return t;
    if (line.starts_with("running")) {
        t.call = -1;
        return t;
    }
    std::istringstream in{line};
    long call = -1;
    in >> call;
    std::vector<std::uint64_t> words;
    for (std::string word; in >> word;) words.push_back(std::strtoull(word.c_str(), nullptr, 16));
    if (words.size() < 2) return t;
    t.call = call;
    t.at.set(registers::sp, words[words.size() - 2]);
    t.at.set(registers::ip, words.back());
    return t;
}

int live_process::tid_here(int own) const {
    if (!has_own_numbers_) return own;
    const auto found = tids_.find(own);
    if (found != tids_.end()) return found->second;
    // It may be a thread made since. One that has ended is asked for again and again, too.
    constexpr std::int64_t pause = 100'000'000;
    if (tids_read_at_ != 0 && now() - tids_read_at_ < pause) return 0;
    tids_.clear();
    std::error_code gone;
    for (const auto& entry : std::filesystem::directory_iterator{proc("task"), gone}) {
        const std::vector<int> numbers = numbers_of(entry.path() / "status");
        if (!numbers.empty()) tids_.emplace(numbers.back(), numbers.front());
    }
    tids_read_at_ = now();
    const auto again = tids_.find(own);
    return again != tids_.end() ? again->second : 0;
}

bool live_process::glimpse(int tid, const std::function<void(const registers&)>& look) const {
    stopped_threads one;
    one.reserve(1);
    if (!halt(tid)) return false;
    one.push_back(tid);
    user_regs_struct user;
    const bool known = ptrace(PTRACE_GETREGS, tid, nullptr, &user) == 0;
    if (known) look(from_user(user));
    return known;
}

std::int64_t live_process::now() const {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * std::int64_t{1'000'000'000} + t.tv_nsec;
}

}  // namespace tool::inspect
