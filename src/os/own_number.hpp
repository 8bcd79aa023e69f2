// SPDX-License-Identifier: MIT
#pragma once

// os/own_number.hpp: which numbers the descriptors of libums's own have.
//
// Programs give the lowest numbers a meaning: 0 to 2 always, and those of one digit as a shell's
// redirections do. A daemon that starts without 0 to 2, or closes them, later puts other files
// there by dup2(), which closes whatever has the number. So a descriptor of ours that stays goes
// above all of them, and one that is there for a moment goes above 2. Not higher: the kernel makes
// the table of a process larger at 64, and waits for all CPUs then.
//
// A program may close numbers that it does not know (close_range(), closefrom()), and get them for
// its own files. What we do to a number must then not harm such a file: where a call could, the
// kernel is asked first.

#include <fcntl.h>

#include "os/io_calls.hpp"

namespace ums::os {

constexpr int lowest_that_stays = 10, lowest_for_a_moment = 3;

// Moves a new descriptor. Returns its number, which is the old one if the process has no other
// left. An error number is returned as it is.
inline long out_of_the_way(long fd, int lowest = lowest_that_stays) noexcept {
    if (fd < 0 || fd >= lowest) return fd;
    const long moved = io_call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, lowest);
    if (moved < 0) return fd;
    io_call(SYS_close, fd);
    return moved;
}

// Whether the number still has a file without a name and a type, such as an eventfd or an epoll
// set, as far as one can tell.
bool is_anonymous(int fd) noexcept;

}  // namespace ums::os
