// SPDX-License-Identifier: MIT
#include "waits.hpp"

#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <iterator>
#include <string>

namespace tool::running {

namespace {

// More than these are the descriptors of an event loop, not of a thread's own connection: a proxy
// has two, and a pipe to wake it up.
constexpr unsigned long few_descriptors = 4;

constexpr long transfers[] = {SYS_read,  SYS_readv,  SYS_pread64,  SYS_preadv,  SYS_preadv2,
                              SYS_write, SYS_writev, SYS_pwrite64, SYS_pwritev, SYS_pwritev2};
constexpr long socket_calls[] = {SYS_accept,   SYS_accept4, SYS_connect, SYS_recvfrom, SYS_recvmsg,
                                 SYS_recvmmsg, SYS_sendto,  SYS_sendmsg, SYS_sendmmsg};
constexpr long loop_calls[] = {SYS_epoll_wait, SYS_epoll_pwait, SYS_epoll_pwait2,
                               SYS_io_uring_enter, SYS_io_getevents};
constexpr long sleeps[] = {SYS_nanosleep, SYS_clock_nanosleep};
constexpr long flushes[] = {SYS_fsync, SYS_fdatasync, SYS_sync_file_range};
// With a vfork() the caller waits in the call that makes the child.
constexpr long child_calls[] = {SYS_wait4, SYS_waitid, SYS_vfork, SYS_clone, SYS_clone3};

}  // namespace

const char* name_of(wait what) {
    static constexpr const char* names[wait_count] = {
        "none",  "unknown", "futex", "futex with a timeout", "socket", "pipe", "poll",
        "epoll", "sleep",   "file",  "child process",        "other"};
    assert(static_cast<std::size_t>(what) < wait_count && "there is no such wait");
    return names[static_cast<std::size_t>(what)];
}

wait wait_reader::of_descriptor(unsigned long fd) {
    const auto [at, is_new] = known_.try_emplace(fd, wait::other);
    if (!is_new) return at->second;
    char text[64];
    const auto n = readlink(fmt::format("/proc/{}/fd/{}", pid_, fd).c_str(), text, sizeof text);
    const std::string_view to{text, n > 0 ? static_cast<std::size_t>(n) : 0};
    if (to.starts_with("socket:"))
        at->second = wait::socket;
    else if (to.starts_with("pipe:") || to.starts_with("anon_inode:[eventfd]"))
        at->second = wait::pipe;
    else if (to.starts_with("/") && !to.starts_with("/dev/"))
        at->second = wait::file;
    return at->second;
}

wait wait_reader::read(std::string_view line) {
    if (line.starts_with("running")) return wait::none;
    long call = 0;
    unsigned long a[4] = {};
    const std::string text{line};
    const int n =
        std::sscanf(text.c_str(), "%ld %lx %lx %lx %lx", &call, &a[0], &a[1], &a[2], &a[3]);
    if (n < 1) return wait::unknown;
    if (call < 0) return wait::file;  // In no call: a page fault.
    if (call == SYS_futex) {
        const auto operation = a[1] & FUTEX_CMD_MASK;
        const bool may_be_timed = operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET;
        return may_be_timed && a[3] != 0 ? wait::timed_futex : wait::futex;
    }
    if (call == SYS_poll || call == SYS_ppoll)
        return a[1] == 0 ? wait::sleep : a[1] <= few_descriptors ? wait::poll : wait::loop;
    if (call == SYS_select || call == SYS_pselect6) return a[0] == 0 ? wait::sleep : wait::poll;
    const auto is_any_of = [call](const auto& calls) {
        return std::find(std::begin(calls), std::end(calls), call) != std::end(calls);
    };
    if (is_any_of(transfers)) return of_descriptor(a[0]);
    if (is_any_of(socket_calls)) return wait::socket;
    if (is_any_of(loop_calls)) return wait::loop;
    if (is_any_of(sleeps)) return wait::sleep;
    if (is_any_of(flushes)) return wait::file;
    return is_any_of(child_calls) ? wait::child : wait::other;
}

}  // namespace tool::running
