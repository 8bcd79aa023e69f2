// SPDX-License-Identifier: MIT
#include "os/thread_state.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/system.hpp"

namespace ums::os {

thread_state::thread_state(int tid) noexcept : tid_{tid}, fd_{static_cast<int>(open())} {}

thread_state::~thread_state() {
    if (fd_ >= 0) system.close_fd(fd_);
}

long thread_state::open() const noexcept {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/self/task/%d/syscall", tid_);
    long fd = system.open_to_read(path);
    is_stat_ = fd == -ENOENT || fd == -EACCES || fd == -EPERM;
    if (is_stat_) {
        std::snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid_);
        fd = system.open_to_read(path);
    }
    return fd;
}

thread_state::seen thread_state::look() const noexcept {
    const long fd = fd_ >= 0 ? fd_ : open();
    if (fd < 0) return {kind::unknown, 0};
    char text[256];
    const long n = system.read_from_start(static_cast<int>(fd), text, sizeof text - 1);
    if (fd_ < 0) system.close_fd(static_cast<int>(fd));
    if (n <= 0) return {kind::unknown, 0};
    text[n] = 0;
    return is_stat_ ? parse_stat(text) : parse_syscall(text);
}

thread_state::seen thread_state::parse_syscall(const char* text) noexcept {
    if (std::strncmp(text, "running", 7) == 0) return {kind::running, 0};
    char* end = nullptr;
    const long call = std::strtol(text, &end, 10);
    if (end == text) return {kind::unknown, 0};
    return call >= 0 ? seen{kind::in_call, call} : seen{kind::in_fault, 0};
}

thread_state::seen thread_state::parse_stat(const char* text) noexcept {
    // "TID (name) S ...". The name may contain anything.
    const char* name_end = std::strrchr(text, ')');
    if (name_end == nullptr || name_end[1] != ' ') return {kind::unknown, 0};
    switch (name_end[2]) {
        case 'R':
            return {kind::running, 0};
        case 'S':
        case 'D':
            return {kind::waiting, 0};
        default:
            return {kind::unknown, 0};
    }
}

long thread_state::try_it() noexcept {
    const thread_state self{static_cast<int>(::syscall(SYS_gettid))};
    if (self.fd_ < 0) return self.fd_;
    return self.look().what == kind::unknown ? -EIO : 0;
}

}  // namespace ums::os
