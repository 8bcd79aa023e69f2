// SPDX-License-Identifier: MIT
#pragma once

// os/thread_state.hpp: what other kernel threads of this process are doing, from /proc.
//
// /proc/self/task/TID/syscall says "running" of a thread that runs or only waits for a CPU, the number
// of the system call of one that waits in one, and -1 of one that waits outside of any: in a page fault.
// A kernel without it has stat at least, which tells waiting from running.
//
// The folder is opened once, so a later chroot() does not matter; each look opens, reads and closes the
// thread's file in it. A second descriptor is held in reserve: where the process has none left, a look
// closes the reserve, uses the free place, and takes the reserve back. Only if another thread grabs that
// place in between does a look say `unknown`, as it does of a thread that has ended.
//
// Threads:  any number may look at once.
// Cost:     two descriptors for the object; look() 2 to 4 us.

#include "base/atomic.hpp"

namespace ums::os {

class thread_states {
public:
    enum class kind : unsigned char { unknown, running, in_call, in_fault, waiting };
    struct seen {
        kind what;
        long call;  // The number, if in_call.
    };

    thread_states() noexcept = default;
    ~thread_states() { close(); }
    thread_states(const thread_states&) = delete;
    thread_states& operator=(const thread_states&) = delete;

    // Opens the folder, and looks at the calling thread to see that it works. 0 or -errno.
    [[nodiscard]] long open() noexcept;
    void close() noexcept;

    // Requires: open() has returned 0.
    [[nodiscard]] seen look(int tid) noexcept;

    // What the text of the file says; for tests.
    [[nodiscard]] static seen parse_syscall(const char* text) noexcept;
    [[nodiscard]] static seen parse_stat(const char* text) noexcept;

private:
    long read(int tid, const char* file, char* into, unsigned long bytes) noexcept;
    long open_file(const char* path) noexcept;
    void take_reserve() noexcept;

    int folder_ = -1;
    base::atomic<int> reserve_{-1};  // A descriptor. Belongs to the thread that takes it out.
};

}  // namespace ums::os
