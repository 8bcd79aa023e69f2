// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/run/waits.hpp: what a kernel thread waits for, by the system call it is in.

#include <cstddef>
#include <map>
#include <string_view>

namespace tool::running {

enum class wait : unsigned {
    none,         // It runs, or is ready.
    unknown,      // It waits, and nobody could see for what.
    futex,        // For another thread: mutexes, condition variables, semaphores, joins.
    timed_futex,  // The same with a timeout.
    socket,       // In accept, connect, or a call that sends or receives.
    pipe,         // In a read or write of a pipe or an eventfd.
    poll,         // In poll or select of a few descriptors.
    loop,         // In epoll_wait, io_uring_enter, or poll of many: the program multiplexes itself.
    sleep,
    file,   // In a read, write or flush of a file, or for a page of memory.
    child,  // For another process.
    other,
};
constexpr std::size_t wait_count = static_cast<std::size_t>(wait::other) + 1;

// As the report names it.
[[nodiscard]] const char* name_of(wait what);

// Reads /proc/PID/task/TID/syscall. What a descriptor is, is asked of the kernel and kept until
// forget().
class wait_reader {
public:
    explicit wait_reader(int pid) : pid_{pid} {}
    [[nodiscard]] wait read(std::string_view line);
    // The numbers may be other files' by now.
    void forget() { known_.clear(); }

private:
    wait of_descriptor(unsigned long fd);

    int pid_;
    std::map<unsigned long, wait> known_;
};

}  // namespace tool::running
