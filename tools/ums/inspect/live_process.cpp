// SPDX-License-Identifier: MIT
#include "live_process.hpp"

#include <fmt/format.h>
#include <sys/ptrace.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <ctime>
#include <exception>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

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

// --- Reading ---

// A process can make a read of its memory wait for as long as it likes: the page may be one that it
// has to supply itself (userfaultfd(2), a file system of its own). No signal ends that wait but one
// that ends the command, so a thread is there to say why.
constexpr time_t read_most_s = 10;
std::atomic<int> read_from{0};

void watch_reads() {
    static const bool is_watched = [] {
        sigset_t all, alarm;
        sigemptyset(&alarm);
        sigaddset(&alarm, SIGALRM);
        sigfillset(&all);
        sigset_t before;
        pthread_sigmask(SIG_SETMASK, &all, &before);
        std::thread{[alarm] {
            int signal = 0;
            sigwait(&alarm, &signal);
            fmt::print(stderr,
                       "ums: process {} keeps the reader of its memory waiting: given up after "
                       "{} s\n",
                       read_from.load(), read_most_s);
            _exit(1);
        }}.detach();
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        pthread_sigmask(SIG_BLOCK, &alarm, nullptr);
        return true;
    }();
    (void)is_watched;
}

ssize_t read_in_time(int pid, const iovec* here, const iovec* there, std::size_t n) {
    read_from = pid;
    const itimerval most{{}, {read_most_s, 0}}, none{};
    setitimer(ITIMER_REAL, &most, nullptr);
    const ssize_t got = process_vm_readv(pid, here, n, there, n, 0);
    const int error = errno;
    setitimer(ITIMER_REAL, &none, nullptr);
    errno = error;
    return got;
}

// --- Stopping threads ---

using clock = std::chrono::steady_clock;

// A thread that waits in the kernel where no signal ends the wait, for a disk or in vfork(), stops
// only after it: as late as whoever makes it wait likes.
constexpr std::chrono::milliseconds stop_most{1000}, glimpse_most{100};

// A stop of a thread tells the tracer by SIGCHLD. Blocked, it is kept until somebody takes it, so
// none is lost between a look at the thread and the wait. For the whole command, before it has
// another thread: a blocked signal is kept only if no thread lets it in.
void keep_stops() {
    std::signal(SIGCHLD, SIG_DFL);  // Ignored, it would not be sent.
    sigset_t stops;
    sigemptyset(&stops);
    sigaddset(&stops, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &stops, nullptr);
}

bool seize(int tid) {
    errno = 0;
    return ptrace(PTRACE_SEIZE, tid, nullptr, nullptr) == 0 &&
           ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr) == 0;
}

enum class halt { there, not_yet, gone };

// Looks whether a seized thread has stopped. A signal that arrived first is delivered when the
// thread continues.
halt look_for_halt(int tid) {
    for (;;) {
        int status = 0;
        const int r = waitpid(tid, &status, __WALL | WNOHANG);
        if (r < 0 && errno == EINTR) continue;
        if (r == 0) return halt::not_yet;
        if (r != tid || !WIFSTOPPED(status)) return halt::gone;
        if (status >> 16 == PTRACE_EVENT_STOP) return halt::there;
        ptrace(PTRACE_CONT, tid, nullptr, WSTOPSIG(status));
    }
}

// Waits until a seized thread has stopped. Not by a wait for the thread, which has no limit.
halt wait_for_halt(int tid, clock::time_point until) {
    sigset_t stops;
    sigemptyset(&stops);
    sigaddset(&stops, SIGCHLD);
    for (;;) {
        if (const halt h = look_for_halt(tid); h != halt::not_yet) return h;
        const auto left = std::chrono::nanoseconds{until - clock::now()}.count();
        if (left <= 0) return halt::not_yet;
        const timespec most{left / 1'000'000'000, left % 1'000'000'000};
        sigtimedwait(&stops, nullptr, &most);
    }
}

}  // namespace

// Stops threads from a thread of its own. A thread that has not stopped yet cannot be let go, and
// would stop later, when nobody looks any more. But the kernel lets go of all that a tracer has
// when the tracer ends, and the tracer is a thread: this one.
class live_process::stopper {
public:
    stopper() : thread_{[this] { work(); }} {}
    ~stopper() {
        do_there([this] { let_all_go(); });
        {
            const std::lock_guard guard{lock_};
            is_over_ = true;
        }
        changed_.notify_all();
        thread_.join();
    }
    stopper(const stopper&) = delete;
    stopper& operator=(const stopper&) = delete;

    // Returns what it throws.
    void do_there(const std::function<void()>& job) {
        std::unique_lock guard{lock_};
        job_ = &job;
        changed_.notify_all();
        changed_.wait(guard, [this] { return job_ == nullptr; });
        if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    }

    // Those that stopped, with their registers.
    std::map<int, user_regs_struct> stopped;
    std::set<int> late;  // Seized, and in the kernel still. They run nothing of their program.

    // To be called by do_there():
    bool take(int tid, clock::time_point until) {
        if (!seize(tid)) return false;
        if (wait_for_halt(tid, until) != halt::there) {
            late.insert(tid);
            return true;
        }
        keep(tid);
        return true;
    }
    void keep(int tid) {
        user_regs_struct user;
        if (ptrace(PTRACE_GETREGS, tid, nullptr, &user) == 0) stopped.emplace(tid, user);
    }
    void let_all_go() {
        for (const auto& [tid, registers] : stopped) ptrace(PTRACE_DETACH, tid, nullptr, nullptr);
        stopped.clear();
    }

private:
    void work() {
        std::unique_lock guard{lock_};
        for (;;) {
            changed_.wait(guard, [this] { return job_ != nullptr || is_over_; });
            if (job_ == nullptr) return;
            try {
                (*job_)();
            } catch (...) {
                failure_ = std::current_exception();
            }
            job_ = nullptr;
            changed_.notify_all();
        }
    }

    std::mutex lock_;
    std::condition_variable changed_;
    const std::function<void()>* job_ = nullptr;
    std::exception_ptr failure_;
    bool is_over_ = false;
    std::thread thread_;
};

live_process::live_process(int pid, bool stop) : pid_{pid} {
    if (pid == 0 || (kill(pid, 0) != 0 && errno == ESRCH))
        throw std::runtime_error{fmt::format("there is no process {}", pid)};
    watch_reads();
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
        m.path = path_in_maps(std::move(m.path));
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

live_process::~live_process() = default;

std::int64_t live_process::let_go() {
    if (!stopped_) return 0;
    stopped_.reset();
    return now() - stopped_at_;
}

std::uint64_t live_process::bytes() const {
    // So much may have been added since the kernel counted, or been counted by other CPUs alone.
    constexpr std::uint64_t slack = 64 << 20;
    std::uint64_t all = slack;
    std::ifstream file{proc("status")};
    for (std::string line; std::getline(file, line);)
        for (const char* const name : {"VmRSS:", "VmSwap:", "HugetlbPages:"})
            if (line.starts_with(name))
                all += std::strtoull(line.c_str() + std::strlen(name), nullptr, 10) * 1024;
    return all;
}

std::string live_process::proc(const std::string& rest) const {
    return fmt::format("/proc/{}/{}", pid_, rest);
}

void live_process::stop_all() {
    assert(stopped_ == nullptr && "a process is stopped that stands still");
    keep_stops();
    stopped_at_ = now();
    stopped_ = std::make_unique<stopper>();
    stopper& all = *stopped_;
    all.do_there([&] {
        const auto until = clock::now() + stop_most;
        std::set<int> known, running;
        // Catches threads that are made meanwhile: repeats until a look finds none that still runs.
        for (bool found = true; found && clock::now() < until;) {
            found = false;
            std::error_code gone;
            for (const auto& entry : std::filesystem::directory_iterator{proc("task"), gone}) {
                const int tid = std::stoi(entry.path().filename().string());
                if (known.contains(tid)) continue;
                if (seize(tid)) {
                    known.insert(tid);
                    running.insert(tid);
                    found = true;
                } else if (errno == EPERM) {
                    refuse(pid_, EPERM);
                }
            }
            if (gone) refuse(pid_, ESRCH);
            for (const int tid : std::exchange(running, {})) {
                const halt h = wait_for_halt(tid, until);
                if (h == halt::there) all.keep(tid);
                if (h == halt::not_yet) all.late.insert(tid);
            }
        }
    });
    if (all.late.empty()) return;
    warning_ = fmt::format(
        "{} of {} threads did not stop within a second: the kernel keeps them, as in vfork() or "
        "while a disk is slow; they run nothing meanwhile",
        all.late.size(), all.late.size() + all.stopped.size());
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
        const ssize_t got = read_in_time(pid_, here, there, n);
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
    if (stopped_ != nullptr)
        if (const auto one = stopped_->stopped.find(tid); one != stopped_->stopped.end()) {
            t.at = from_user(one->second);
            t.call = static_cast<long>(one->second.orig_rax);
            t.state = *t.call >= 0 ? 'S' : 'R';  // By now the state is 't'.
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

std::int64_t live_process::glimpse(int tid,
                                   const std::function<void(const registers&)>& look) const {
    // The process says which threads it has; another's must not be stopped at its word.
    if (tid <= 0 || access(proc(fmt::format("task/{}", tid)).c_str(), F_OK) != 0) return 0;
    keep_stops();
    if (glimpser_ == nullptr) glimpser_ = std::make_unique<stopper>();
    stopper& one = *glimpser_;
    std::int64_t ns = 0;
    const auto job = [&] {
        const auto begin = clock::now();
        if (!one.take(tid, begin + glimpse_most) || one.stopped.empty()) return;
        look(from_user(one.stopped.begin()->second));
        one.let_all_go();
        ns = std::chrono::nanoseconds{clock::now() - begin}.count();
    };
    // The end of the stopper lets go of whatever it has.
    try {
        one.do_there(job);
    } catch (...) {
        glimpser_.reset();
        throw;
    }
    if (!one.late.empty()) glimpser_.reset();
    return ns;
}

std::int64_t live_process::on_cpu_ns(int tid) const {
    std::int64_t ns = -1;
    std::ifstream{proc(fmt::format("task/{}/schedstat", tid))} >> ns;
    return ns;
}

std::int64_t live_process::now() const {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * std::int64_t{1'000'000'000} + t.tv_nsec;
}

}  // namespace tool::inspect
