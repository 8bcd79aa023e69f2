// SPDX-License-Identifier: MIT
#pragma once

// io/operation.hpp: how an operation on a descriptor that can wait is carried out.
//
// perform() makes the system call, and waits for an edge and makes it again while it would block.
// When the wait is given up, the call is made once more, so that what came before the deadline is not lost by being
// noticed late. A waiter may have been woken before the descriptor was closed, and run after the number was given to the
// next file: it looks at the generation before it tries again.

#include <cerrno>
#include <poll.h>

#include "io/descriptor.hpp"
#include "os/io_calls.hpp"
#include "ums/limits.hpp"

namespace ums::io {

template <class Call>
long without_interruption(Call& call) noexcept {
    long n;
    do n = call();
    while (n == -EINTR);
    return n;
}

// Whether a blocking descriptor that must stay so would block now.
inline bool would_block(int fd, side s) noexcept {
    pollfd one{fd, static_cast<short>(s == side::in ? POLLIN : POLLOUT), 0};
    const timespec zero{};
    return os::io_call(SYS_ppoll, &one, 1, &zero, nullptr, 8) == 0;
}

// What a successful read leaves: a TCP socket that gave fewer bytes than the call asked for has no more. `wanted`
// 0: not known.
inline bool leaves_nothing(const descriptor& d, std::uint32_t traits, long n,
                           std::size_t wanted) noexcept {
    return (traits & descriptor::tcp) != 0 && n > 0 && static_cast<std::size_t>(n) < wanted &&
           !d.is_hung_up();
}

// `generation`: read before the first attempt. `tried`: that one found nothing to do.
template <class Call>
[[gnu::noinline]] long perform_waiting(descriptor& d, int fd, side s, std::size_t wanted,
                                       const limits& l, std::uint32_t generation, bool tried,
                                       Call call) noexcept {
    const long traits = d.learn(fd);
    if (traits < 0) return traits;
    const bool ask_first = (traits & descriptor::ask_first) != 0;
    // An edge came, or this is the last attempt; or a writer, who has yet to take the mark, tries again.
    bool is_due = tried && s == side::out;
    bool take_first = tried || s == side::in;
    long gave_up = 0;
    for (;;) {
        const bool has_mark = d.may_be_ready(s);
        if (has_mark || is_due) {
            const bool taken = has_mark && take_first && d.take(s);
            const long n = ask_first && would_block(fd, s) ? -EAGAIN : without_interruption(call);
            if (n != -EAGAIN) {
                const bool is_empty =
                    s == side::in &&
                    leaves_nothing(d, static_cast<std::uint32_t>(traits), n, wanted);
                if ((taken || is_due) && !is_empty) d.restore(s);
                return n;
            }
            if (gave_up != 0) return gave_up;
            if (has_mark && !taken) {
                take_first = is_due = true;
                continue;
            }
        }
        const long r = d.wait(fd, s, generation, os::to_nanoseconds(l.until), l.stop);
        if (r == -ETIMEDOUT || r == -ECANCELED)
            gave_up = r;
        else if (r != 0)
            return r;
        if (d.generation() != generation) return d.restore(s), -EBADF;
        is_due = true;
    }
}

// `wanted`: how many bytes the call asks for; 0: not known. The first attempt is made here, where the compiler
// sees the call: most need no other.
template <class Call>
long perform(descriptor& d, int fd, side s, std::size_t wanted, const limits& l,
             Call call) noexcept {
    const std::uint32_t generation = d.generation();
    const std::uint32_t traits = d.known_traits();
    bool tried = false;
    if ((traits & (descriptor::known | descriptor::ask_first)) == descriptor::known &&
        d.may_be_ready(s) && (s == side::out || d.take(s))) [[likely]] {
        tried = true;
        const long n = without_interruption(call);
        if (n != -EAGAIN) [[likely]] {
            if (s == side::in && !leaves_nothing(d, traits, n, wanted)) d.restore(s);
            return n;
        }
    }
    return perform_waiting(d, fd, s, wanted, l, generation, tried, call);
}

}  // namespace ums::io
