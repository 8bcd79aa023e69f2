// SPDX-License-Identifier: MIT
#pragma once

// os/thread/thread_state.hpp: what other kernel threads of this process are doing, from /proc.
//
// /proc/self/task/TID/syscall says "running" for a thread that runs or only waits for a CPU; the
// number of the system call for one that waits in a call; and -1 for one that waits outside of any,
// in a page fault. A kernel without this file has at least stat, which tells waiting from running.
//
// The folder is opened once, so a later chroot() does not matter; each look opens, reads and closes
// the thread's file in it. The object holds a second descriptor in reserve: where the process has
// none left, a look closes the reserve, uses the free place, and takes the reserve back. A look
// says `unknown` only if another thread grabs that place in between, or if the thread has ended.
//
// A program may close the two numbers, or put other files there: a look asks whether the folder is
// still what it was, if it finds nothing, and opens it again. The lost numbers are not touched.
//
// Threads:  any number may look at once.
// Cost:     two descriptors for the object; look() takes 2 to 4 us.

#include <cstdint>

#include "base/atomic.hpp"

namespace ums::os {

class thread_states {
public:
    enum class kind : unsigned char { unknown, running, in_call, in_fault, waiting };
    struct seen {
        kind what;
        long call;  // The number of the call, if in_call.
    };

    thread_states() noexcept = default;
    ~thread_states() { close(); }
    thread_states(const thread_states&) = delete;
    thread_states& operator=(const thread_states&) = delete;

    // Opens the folder, and looks at the calling thread to see that it works. Returns 0 or -errno.
    [[nodiscard]] long open() noexcept;
    void close() noexcept;

    // Requires: open() has returned 0.
    [[nodiscard]] seen look(int tid) noexcept;

    // Whether the thread sleeps in the kernel until something comes, unlike one that waits for a
    // disk. False if that cannot be found out. Requires the same.
    [[nodiscard]] bool is_asleep(int tid) noexcept;

    // Says what the text of the file means; for tests.
    [[nodiscard]] static seen parse_syscall(const char* text) noexcept;
    [[nodiscard]] static seen parse_stat(const char* text) noexcept;

private:
    long read(int tid, const char* file, char* into, unsigned long bytes) noexcept;
    long open_file(const char* path) noexcept;
    void take_reserve() noexcept;

    long open_in_folder(const char* path) noexcept;
    [[nodiscard]] bool is_ours(int fd) const noexcept;

    base::atomic<int> folder_{-1};
    base::atomic<std::uint64_t> identity_;  // Of the folder.
    base::atomic<int> reserve_{-1};  // A descriptor. It belongs to the thread that takes it out.
};

}  // namespace ums::os
