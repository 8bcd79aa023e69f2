// SPDX-License-Identifier: MIT
#include "os/thread/thread_state.hpp"

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

#include "os/io_calls.hpp"
#include "os/say.hpp"
#include "os/system.hpp"

namespace ums::os {

long thread_states::open() noexcept {
    const long folder = system.open_to_read("/proc/self/task");
    if (folder < 0) return folder;
    // relaxed, like all accesses to it: it guards nothing but itself.
    folder_.store(static_cast<int>(folder), base::relaxed);
    identity_.store(system.identity_of(static_cast<int>(folder)), base::relaxed);
    take_reserve();
    char text[256];
    const int self = ::gettid();
    const long n = read(self, "/stat", text, sizeof text);
    if (n < 0) close();
    return n < 0 ? n : 0;
}

bool thread_states::is_ours(int fd) const noexcept {
    return fd >= 0 && system.identity_of(fd) == identity_.load(base::relaxed);
}

void thread_states::close() noexcept {
    // relaxed, like all accesses to it: it guards nothing but itself.
    const int reserve = reserve_.exchange(-1, base::relaxed);
    const int folder = folder_.exchange(-1, base::relaxed);
    for (const int fd : {reserve, folder})
        if (is_ours(fd)) system.close_fd(fd);
}

void thread_states::take_reserve() noexcept {
    const int folder = folder_.load(base::relaxed);
    if (!is_ours(folder)) return;
    const long fd = system.duplicate(folder);
    if (fd < 0) return;
    int none = -1;
    if (!reserve_.compare_exchange(none, static_cast<int>(fd), base::relaxed, base::relaxed))
        system.close_fd(static_cast<int>(fd));
}

long thread_states::open_in_folder(const char* path) noexcept {
    int folder = folder_.load(base::relaxed);
    const long fd = system.open_at(folder, path);
    // The thread has ended, or the folder is lost.
    if ((fd != -ENOENT && fd != -EBADF && fd != -ENOTDIR) || is_ours(folder)) return fd;
    const long again = system.open_to_read("/proc/self/task");
    if (again < 0) return fd;
    identity_.store(system.identity_of(static_cast<int>(again)), base::relaxed);
    if (!folder_.compare_exchange(folder, static_cast<int>(again), base::relaxed, base::relaxed))
        system.close_fd(static_cast<int>(again));
    return system.open_at(folder_.load(base::relaxed), path);
}

long thread_states::open_file(const char* path) noexcept {
    const long fd = open_in_folder(path);
    if (fd != -EMFILE && fd != -ENFILE) return fd;
    const int reserve = reserve_.exchange(-1, base::relaxed);
    if (!is_ours(reserve)) return fd;
    system.close_fd(reserve);
    return open_in_folder(path);
}

long thread_states::read(int tid, const char* file, char* into, unsigned long bytes) noexcept {
    char path[32];
    char* const end = std::to_chars(path, path + 12, tid).ptr;
    std::strcpy(end, file);
    const long fd = open_file(path);
    long n = fd;
    if (fd >= 0) {
        n = system.read_from_start(static_cast<int>(fd), into, bytes - 1);
        system.close_fd(static_cast<int>(fd));
        if (n >= 0) into[n] = 0;
    }
    if (reserve_.load(base::relaxed) < 0) take_reserve();
    return n == 0 ? -EIO : n;
}

namespace {

void say_once(long error) noexcept {
    static constinit base::atomic<bool> has_said;
    // relaxed: the flag only says whether the line was printed.
    if (has_said.exchange(true, base::relaxed)) return;
    say("the states of kernel threads can no longer be read from /proc/self/task (openat, read: "
        "%s; perhaps a seccomp filter): fibers and workers that block in the kernel are found late",
        std::strerror(static_cast<int>(-error)));
}

}  // namespace

thread_states::seen thread_states::look(int tid) noexcept {
    char text[256];
    long n = read(tid, "/syscall", text, sizeof text);
    if (n > 0) return parse_syscall(text);
    if (n != -ENOENT && !is_refused(n)) return {kind::unknown, 0};
    n = read(tid, "/stat", text, sizeof text);
    if (n > 0) return parse_stat(text);
    if (is_refused(n)) say_once(n);
    return {kind::unknown, 0};
}

// "TID (name) S ...". The name may contain anything. 0: not such a text.
static char state_in(const char* text) noexcept {
    const char* const name_end = std::strrchr(text, ')');
    return name_end != nullptr && name_end[1] == ' ' ? name_end[2] : '\0';
}

bool thread_states::is_asleep(int tid) noexcept {
    char text[256];
    return read(tid, "/stat", text, sizeof text) > 0 && state_in(text) == 'S';
}

thread_states::seen thread_states::parse_syscall(const char* text) noexcept {
    if (std::strncmp(text, "running", 7) == 0) return {kind::running, 0};
    char* end = nullptr;
    const long call = std::strtol(text, &end, 10);
    if (end == text) return {kind::unknown, 0};
    return call >= 0 ? seen{kind::in_call, call} : seen{kind::in_fault, 0};
}

thread_states::seen thread_states::parse_stat(const char* text) noexcept {
    switch (state_in(text)) {
        case 'R':
            return {kind::running, 0};
        case 'S':
        case 'D':
            return {kind::waiting, 0};
        default:
            return {kind::unknown, 0};
    }
}

}  // namespace ums::os
