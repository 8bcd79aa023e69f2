// SPDX-License-Identifier: MIT
#pragma once

// os/thread_state.hpp: what another kernel thread of this process is doing, from /proc.
//
// /proc/self/task/TID/syscall says "running" of a thread that runs or is only waiting for a CPU, the
// number of the system call of one that waits in one, and -1 of one that waits outside of any: in a
// page fault. Kernels without it have stat at least, which tells waiting from running.
//
// Errors: EMFILE and the like make look() open the file anew each time; if that fails too it says
//         `unknown`, as it does of a thread that has ended.
// Cost:   a descriptor while it exists; look() 1 to 2 us.

namespace ums::os {

class thread_state {
public:
    enum class kind : unsigned char { unknown, running, in_call, in_fault, waiting };
    struct seen {
        kind what;
        long call;  // The number, if in_call.
    };

    explicit thread_state(int tid) noexcept;
    ~thread_state();
    thread_state(const thread_state&) = delete;
    thread_state& operator=(const thread_state&) = delete;

    [[nodiscard]] seen look() const noexcept;

    // Whether look() works at all, tried on the calling thread; 0 or -errno.
    [[nodiscard]] static long try_it() noexcept;

    // What the text of the file says; for tests.
    [[nodiscard]] static seen parse_syscall(const char* text) noexcept;
    [[nodiscard]] static seen parse_stat(const char* text) noexcept;

private:
    long open() const noexcept;  // Sets is_stat_.

    const int tid_;
    mutable bool is_stat_ = false;
    int fd_;
};

}  // namespace ums::os
