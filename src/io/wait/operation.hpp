// SPDX-License-Identifier: MIT
#pragma once

// io/wait/operation.hpp: how to carry out an operation that can wait, on a descriptor.
//
// perform() makes the system call, and waits and repeats it while it would block. When the wait is
// given up, perform() makes the call once more, so that what came before the deadline is not lost
// by being noticed late. A waiter may have been woken before the descriptor was closed, and run
// after the number was given to the next file, so it looks at the generation before it tries again.

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/assert.hpp"
#include "io/wait/descriptor.hpp"
#include "io/wait/give_way.hpp"
#include "os/io_calls.hpp"
#include "sched/run/park.hpp"
#include "ums/limits.hpp"

namespace ums::io {

// The same limits, but not beyond `soon`. The caller's must outlive them. No member of theirs
// behind `stop` is read (ums/limits.hpp).
inline limits not_beyond(deadline soon, const limits& l) noexcept {
    limits sooner{std::min(l.until, soon)};
    sooner.stop = l.stop;
    return sooner;
}

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
    return os::poll_call(&one, 1, &zero) == 0;
}

// Whether a successful read of `wanted` bytes leaves nothing (io/wait/descriptor.hpp). `wanted` is
// 0 if that is not known.
inline bool leaves_nothing(const descriptor& d, std::uint32_t traits, long n,
                           std::size_t wanted) noexcept {
    UMS_DEBUG_ASSERT(wanted == 0 || n <= 0 || static_cast<std::size_t>(n) <= wanted,
                     "a read gave more than its caller says it asked for");
    constexpr std::uint32_t own_pipe = descriptor::fifo | descriptor::ours;
    const bool is_stream = (traits & (descriptor::tcp | descriptor::unix_stream)) != 0 ||
                           (traits & own_pipe) == own_pipe;
    return is_stream && n > 0 && static_cast<std::size_t>(n) < wanted && !d.is_hung_up();
}

// Whether it took as much as it had asked for.
inline bool took_all(long n, std::size_t wanted) noexcept {
    return n > 0 && static_cast<std::size_t>(n) == wanted;
}

// recv(), for perform(). Sets `wanted` to 0 if a short read may leave something all the same: if a
// Unix stream stopped at a message with descriptors or credentials, or was not asked whether it
// did. It is asked once it has been waited for, unless the reads by habit take all they ask for,
// because recvmsg() costs a little more.
inline long receive_now(const number_at& at, void* into, std::size_t bytes, int flags, long traits,
                        std::size_t& wanted) noexcept {
    if ((traits & descriptor::unix_stream) == 0)
        return os::io_call(SYS_recvfrom, at.fd, into, bytes, flags);
    if (!at.d->is_registered() || at.d->mostly_finds_nothing()) {
        const long n = os::io_call(SYS_recvfrom, at.fd, into, bytes, flags);
        if (n >= 0 && !took_all(n, wanted)) {
            wanted = 0;
            at.d->note_read(true);  // The habit was of reads that take all they ask for.
        }
        return n;
    }
    iovec piece{into, bytes};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    const long n = os::io_call(SYS_recvmsg, at.fd, &message, flags);
    if ((message.msg_flags & MSG_CTRUNC) != 0) wanted = 0;
    return n;
}

// Whether a call that has no form that does not block may block: because the file must stay as it
// is, or because its flags are not ours to change.
inline bool may_block(int fd, long traits) noexcept {
    if ((traits & descriptor::ask_first) != 0) return true;
    if ((traits & descriptor::made_here) != descriptor::kept) return false;
    const long flags = os::io_call(SYS_fcntl, fd, F_GETFL);
    return flags >= 0 && (flags & O_NONBLOCK) == 0;
}

// poll(2) says ready, but the attempt finds nothing: waits a little. Returns -ETIMEDOUT, -ECANCELED
// or 0.
inline long pause(os::nanoseconds until, const std::stop_token* stop) noexcept {
    const os::nanoseconds soon = os::now() + 10'000'000;
    const auto why = sched::park(sched::park_kind::internal, std::min(until, soon), stop);
    if (why == sched::parkable::reason::stop) return -ECANCELED;
    return until <= soon ? -ETIMEDOUT : 0;
}

// For a kept number. `generation` was read before the first attempt. `tried` says that this attempt
// found nothing to do; `gave_way`, that others have run before it.
template <class Call>
[[gnu::noinline]] long perform_waiting(descriptor& d, int fd, side s, std::uint32_t traits,
                                       std::size_t& wanted, const limits& l,
                                       std::uint32_t generation, bool tried, bool gave_way,
                                       Call call) noexcept {
    // True if an edge came, or this is the last attempt; or for a writer, which has yet to take the
    // mark and tries again.
    bool is_due = tried && s == side::out;
    bool take_first = tried || s == side::in;
    long gave_up = 0;
    // The limits were over before the first attempt, so another is not due.
    if (tried && l.until == deadline::min())
        return l.stop != nullptr && l.stop->stop_requested() ? -ECANCELED : -ETIMEDOUT;
    if (s == side::in && tried && !gave_way && d.mostly_finds_nothing() && give_way(true)) {
        if (d.generation() != generation) return d.restore(s), -EBADF;
        is_due = true;
    }
    for (;;) {
        const bool has_mark = d.may_be_ready(s);
        if (has_mark || is_due) {
            const bool taken = has_mark && take_first && d.take(s);
            const long n = without_interruption(call);
            if (n != -EAGAIN) {
                const bool is_empty = s == side::in && leaves_nothing(d, traits, n, wanted);
                if ((taken || is_due) && !is_empty) d.restore(s, took_all(n, wanted));
                return n;
            }
            if (gave_up != 0) return gave_up;
            if (has_mark && !taken) {
                take_first = is_due = true;
                continue;
            }
        }
        const long r = d.wait(fd, s, generation, os::to_nanoseconds(l.until), l.stop);
        UMS_DEBUG_ASSERT(r <= 0, "a wait for an edge returned a number of bytes");
        if (r == -ETIMEDOUT || r == -ECANCELED)
            gave_up = r;
        else if (r != 0)
            return r;
        if (d.generation() != generation) return d.restore(s), -EBADF;
        is_due = true;
    }
}

// Whether the operation moves data, which must not go to the number's next file, or only looks.
enum class effect : unsigned char { moves, looks };

// For a shared number: attempts and waits, without a memory of earlier ones. `attempt` does not
// block.
//
// An operation that moves data is for the file that it waited for first. Whatever ended a wait, the
// number may have another one by now: an event may be of the former file, which a duplicate keeps,
// and a deadline tells nothing. So the kernel is asked.
template <class Attempt>
[[gnu::noinline]] long perform_shared(const number_at& at, side s, effect e, const limits& l,
                                      Attempt attempt) noexcept {
    descriptor& d = *at.d;
    std::uint64_t file = 0;
    long gave_up = 0;
    for (unsigned times = 0;; ++times) {
        const long n = without_interruption(attempt);
        if (n != -EAGAIN) return n;
        if (gave_up != 0) return gave_up;
        const os::nanoseconds until = os::to_nanoseconds(l.until);
        // An error queue, for example, makes it ready again and again, and gives a receive nothing.
        const bool is_misled = times >= 2 && !would_block(at.fd, s);
        if (e == effect::looks) file = 0;
        const long r = is_misled ? pause(until, l.stop)
                                 : d.wait_once(at.fd, s, at.generation, file, until, l.stop);
        UMS_DEBUG_ASSERT(r <= 0, "a wait for one event returned a number of bytes");
        if (r == -ETIMEDOUT || r == -ECANCELED)
            gave_up = r;
        else if (r != 0)
            return r;
        if (d.generation() != at.generation) return -EBADF;
        if (e == effect::moves && file != 0 && descriptor::identity_at(at.fd) != file)
            return -EBADF;
    }
}

// `learnt` are the descriptor's traits, or an error to be returned; they were asked for after `at`
// was made. `wanted` is how many bytes the call asks for; 0: not known. The call may set it to 0.
// The first attempt is made here, where the compiler sees the call, because most operations need no
// other.
template <class Call>
long perform(const number_at& at, long learnt, side s, std::size_t& wanted, const limits& l,
             Call call) noexcept {
    if (learnt < 0) return learnt;
    descriptor& d = *at.d;
    const int fd = at.fd;
    const std::uint32_t generation = at.generation;
    const auto traits = static_cast<std::uint32_t>(learnt);
    if ((traits & (descriptor::kept | descriptor::errors)) != descriptor::kept) {
        if ((traits & descriptor::errors) != 0)
            if (const long error = d.take_error(); error != 0) return error;
        if ((traits & descriptor::kept) == 0) return perform_shared(at, s, effect::moves, l, call);
    }
    bool tried = false, gave_way = false;
    const bool was_unsure = s == side::in && d.is_unsure();
    // A call that may not wait runs nobody before it.
    if (was_unsure && l.until != deadline::min() && d.puts_off_a_read()) {
        gave_way = true;
        if (give_way(false) && d.generation() != generation) return -EBADF;
    }
    if (d.may_be_ready(s) && (s == side::out || d.take(s))) [[likely]] {
        tried = true;
        const long n = without_interruption(call);
        if (was_unsure && !gave_way) d.note_read(n != -EAGAIN);
        if (n != -EAGAIN) [[likely]] {
            if (s == side::in && !leaves_nothing(d, traits, n, wanted))
                d.restore(s, took_all(n, wanted));
            return n;
        }
    }
    // What was not unsure has no part in the habit.
    return perform_waiting(d, fd, s, traits, wanted, l, generation, tried, gave_way || !was_unsure,
                           call);
}
template <class Call>
long perform(const number_at& at, long learnt, side s, const limits& l, Call call) noexcept {
    std::size_t unknown = 0;
    return perform(at, learnt, s, unknown, l, call);
}

// For a call that moves data out.
template <class Call>
long perform_write(const number_at& at, long learnt, const limits& l, Call call) noexcept {
    const long n = perform(at, learnt, side::out, l, call);
    at.d->wake_other_end(n);
    return n;
}

}  // namespace ums::io
