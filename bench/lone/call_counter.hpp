// SPDX-License-Identifier: MIT
#pragma once

// bench/lone/call_counter.hpp: counts the system calls of another process, by kind, with ptrace().
//
// A traced call takes many times as long, so nothing else may be measured meanwhile. What the
// process does for lack of work (to spin, to sleep, to wake another processor) depends on time, so
// the counts are those of a slower machine.

#include <dirent.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <latch>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <thread>

namespace lone {

class call_counter {
public:
    enum kind { reads, writes, waits, futexes, controls, masks, others, kinds };
    static constexpr std::array<std::string_view, kinds> names{
        "reads", "writes", "waits", "futexes", "controls", "masks", "others"};

    // Returns once all threads of the process are watched.
    explicit call_counter(pid_t process) : process_{process}, thread_{[this] { watch(); }} {
        attached_.wait();
    }
    call_counter(const call_counter&) = delete;
    call_counter& operator=(const call_counter&) = delete;
    // The process must have been killed: it ends for its parent when the counter is done with it.
    ~call_counter() { thread_.join(); }

    // Whether the kernel allows it. If it does not, nothing is counted.
    bool is_attached() const { return !tasks_.empty(); }

    // relaxed, here and below: counts of what the process did before it answered, or after it was
    // asked; nothing else is read by them.
    void start() { is_counting_.store(true, std::memory_order_relaxed); }
    void stop() { is_counting_.store(false, std::memory_order_relaxed); }
    std::uint64_t count(kind of) const { return counts_[of].load(std::memory_order_relaxed); }

private:
    static kind kind_of(std::uint64_t number) {
        switch (number) {
            case SYS_read:
            case SYS_readv:
            case SYS_preadv2:
            case SYS_recvfrom:
            case SYS_recvmsg:
                return reads;
            case SYS_write:
            case SYS_writev:
            case SYS_pwritev2:
            case SYS_sendto:
            case SYS_sendmsg:
                return writes;
            case SYS_epoll_wait:
            case SYS_epoll_pwait:
            case SYS_epoll_pwait2:
            case SYS_io_uring_enter:
            case SYS_nanosleep:
            case SYS_clock_nanosleep:
                return waits;
            case SYS_futex:
                return futexes;
            case SYS_epoll_ctl:
            case SYS_fcntl:
            case SYS_fstat:
            case SYS_newfstatat:
                return controls;
            case SYS_rt_sigprocmask:
                return masks;
            default:
                return others;
        }
    }

    static void on(int request, pid_t task, std::uintptr_t argument) {
        // A task may have died meanwhile; its end is reported by waitpid().
        (void)ptrace(static_cast<__ptrace_request>(request), task, nullptr, argument);
    }

    // All requests have to come from one thread.
    void watch() {
        attach();
        attached_.count_down();
        if (tasks_.empty()) return;
        for (;;) {
            int status = 0;
            const pid_t task = waitpid(-1, &status, __WALL | __WNOTHREAD);
            if (task < 0) {
                if (errno == EINTR) continue;
                return;
            }
            if (!WIFSTOPPED(status)) {
                if (task == process_) return;
                continue;
            }
            const int signal = WSTOPSIG(status);
            const bool is_event = status >> 16 != 0;
            const bool is_call = signal == (SIGTRAP | 0x80);
            if (is_call && is_counting_.load(std::memory_order_relaxed)) note_call(task);
            on(PTRACE_SYSCALL, task, is_event || is_call ? 0 : static_cast<std::uintptr_t>(signal));
        }
    }

    // Threads that come later are watched from their beginning. A look that finds a new one may
    // have missed others.
    void attach() {
        const auto folder = "/proc/" + std::to_string(process_) + "/task";
        for (bool is_new = true; is_new;) {
            is_new = false;
            const std::unique_ptr<DIR, int (*)(DIR*)> tasks{opendir(folder.c_str()), closedir};
            if (!tasks) return;
            while (const dirent* const one = readdir(tasks.get())) {
                const pid_t task = std::atoi(one->d_name);
                if (task == 0 || tasks_.contains(task)) continue;
                if (ptrace(PTRACE_SEIZE, task, nullptr,
                           PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE) == 0) {
                    on(PTRACE_INTERRUPT, task, 0);
                } else if (errno != EPERM || tasks_.empty()) {
                    continue;  // It has ended, or nothing is allowed.
                }
                // EPERM after others were allowed: the child of one, watched already.
                tasks_.insert(task);
                is_new = true;
            }
        }
    }

    void note_call(pid_t task) {
        __ptrace_syscall_info info{};
        if (ptrace(PTRACE_GET_SYSCALL_INFO, task, sizeof info, &info) <= 0) return;
        if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
            counts_[kind_of(info.entry.nr)].fetch_add(1, std::memory_order_relaxed);
    }

    const pid_t process_;
    std::array<std::atomic<std::uint64_t>, kinds> counts_{};
    std::atomic<bool> is_counting_{false};
    std::set<pid_t> tasks_;  // Complete once attached_.
    std::latch attached_{1};
    std::thread thread_;
};

}  // namespace lone
