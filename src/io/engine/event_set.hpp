// SPDX-License-Identifier: MIT
#pragma once

// io/engine/event_set.hpp: an epoll set in which descriptors are armed for one event at a time, or
// watched for good.
//
// It keeps no file open, tells of a file that was hung up and comes to life again, and knows its
// members by file and number, so it can tell when a number has another file.

#include <cerrno>
#include <cstdint>
#include <sys/epoll.h>

#include "base/assert.hpp"
#include "io/wait/descriptor.hpp"
#include "os/io_calls.hpp"

namespace ums::io::event_set {

// This bit of an event's data stands beside the descriptor's number and generation.
constexpr std::uint64_t mark = std::uint64_t{1} << 31;

inline long arm(int epoll, int fd, std::uint32_t generation, bool in, bool out,
                bool& is_new) noexcept {
    UMS_DEBUG_ASSERT(fd >= 0, "an error number would look like the mark of a one-time event");
    UMS_DEBUG_ASSERT(in || out, "a descriptor was armed for no direction");
    epoll_event on{
        (in ? EPOLLIN | EPOLLRDHUP : 0u) | (out ? EPOLLOUT : 0u) | EPOLLONESHOT,
        {.u64 = std::uint64_t{generation} << 32 | mark | static_cast<std::uint32_t>(fd)}};
    long error = os::io_call(SYS_epoll_ctl, epoll, is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &on);
    if (error == -ENOENT) {
        is_new = true;
        error = os::io_call(SYS_epoll_ctl, epoll, EPOLL_CTL_ADD, fd, &on);
    }
    // The number had this file before, and a duplicate has kept it open.
    if (error == -EEXIST) error = os::io_call(SYS_epoll_ctl, epoll, EPOLL_CTL_MOD, fd, &on);
    return error;
}

// For both directions, edge-triggered.
inline long watch(int epoll, int fd, std::uint32_t generation) noexcept {
    epoll_event on{EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET,
                   {.u64 = std::uint64_t{generation} << 32 | static_cast<std::uint32_t>(fd)}};
    const long error = os::io_call(SYS_epoll_ctl, epoll, EPOLL_CTL_ADD, fd, &on);
    // The number's last file was closed elsewhere, but a duplicate keeps the file and its
    // registration.
    return error == -EEXIST ? os::io_call(SYS_epoll_ctl, epoll, EPOLL_CTL_MOD, fd, &on) : error;
}

inline int number_in(std::uint64_t data) noexcept { return static_cast<int>(data & (mark - 1)); }

inline void deliver(const epoll_event& event, fiber_list& woken) noexcept {
    constexpr std::uint32_t over = EPOLLHUP | EPOLLERR, odd = EPOLLRDHUP | EPOLLPRI;
    const std::uint64_t data = event.data.u64;
    const std::uint32_t e = event.events;
    descriptor& d = *descriptor::find(number_in(data));
    const auto generation = static_cast<std::uint32_t>(data >> 32);
    if ((data & mark) != 0)
        d.fire(generation, woken);
    else
        d.ready(generation, (e & (EPOLLIN | over | odd)) != 0, (e & (EPOLLOUT | over)) != 0,
                (e & (over | odd)) != 0, woken);
}

inline void disarm(int epoll, int fd) noexcept {
    epoll_event none{};
    os::io_call(SYS_epoll_ctl, epoll, EPOLL_CTL_DEL, fd, &none);
}

}  // namespace ums::io::event_set
