// SPDX-License-Identifier: MIT

// POSIX's names for I/O and sleeping: what a program calls that was compiled with UMS_IO_NAMES.
//
// Descriptors that are made here are adopted (io/wait/descriptor.hpp: kept, not ours): they have
// the lasting registration, and all flags of their files are the program's. So O_NONBLOCK and the
// time limits of a socket are asked for where a call would have to wait, which costs a wait two
// system calls. Rejected: to note them when the program sets them. A library, a duplicate and
// another process can set them, too.
//
// Three ways to make a call:
// - as the C library's: on a kernel thread that runs no fiber, and where the call does not wait;
// - as libums's (transfer()): data through a kept descriptor;
// - once poll(2) says ready, as the C library's (once_ready()): the rest. If another caller is
//   faster, it blocks and is handed off.
//
// A handler of a signal may run on a fiber, anywhere. What it may call, write() and send() that
// need not wait, and close(), takes no lock here that the handler's thread may hold. That is why
// the ends of pipes made here do not know each other (descriptor::pair_up()): a write would wake
// fibers.

#include "ums/ums_posix.h"

#include <algorithm>
#include <cstdarg>
#include <fcntl.h>
#include <netdb.h>
#include <stop_token>
#include <unistd.h>

#include "base/assert.hpp"
#include "capi/clock.hpp"
#include "capi/io_result.hpp"
#include "capi/posix_errno.hpp"
#include "io/wait/operation.hpp"
#include "os/thread_slot.hpp"
#include "sched/run/here.hpp"
#include "ums/io.hpp"
#include "ums/this_fiber.hpp"
#include "ums/ums_io.h"

using namespace ums;
using namespace ums::capi;
using io::descriptor;
using io::side;

namespace {

bool on_thread() noexcept { return sched::here{}.self == nullptr; }

// Whether the caller may be a handler of a signal that came while its thread was in libums, and may
// hold a lock.
bool has_interrupted_libums() noexcept {
    const sched::here at;
    if (at.on == nullptr) return os::plain_sections() != 0;
    return at.self == nullptr || at.on->ownership.is_inside() || at.on->no_stops.get() != 0;
}

// Calls that never wait, whatever the descriptor is.
constexpr int without_wait = MSG_DONTWAIT | MSG_ERRQUEUE | MSG_OOB;

deadline after(std::int64_t seconds, std::int64_t ns) noexcept {
    return to_deadline(ums_deadline_after(in_nanoseconds({seconds, ns})));
}

// How long a call may wait, as its descriptor says.
struct patience {
    bool is_none = false;
    bool is_nonblocking = false;
    deadline until = deadline::max();

    patience(int fd, side s) noexcept {
        const long flags = os::io_call(SYS_fcntl, fd, F_GETFL);
        const int other_side = s == side::in ? O_WRONLY : O_RDONLY;
        // An error is the call's to return.
        is_nonblocking = flags >= 0 && (flags & O_NONBLOCK) != 0;
        is_none = flags < 0 || is_nonblocking || (flags & O_ACCMODE) == other_side;
        timeval limit{};
        socklen_t bytes = sizeof limit;
        const int name = s == side::in ? SO_RCVTIMEO : SO_SNDTIMEO;
        if (!is_none && os::io_call(SYS_getsockopt, fd, SOL_SOCKET, name, &limit, &bytes) == 0 &&
            (limit.tv_sec != 0 || limit.tv_usec != 0))
            until = after(limit.tv_sec, limit.tv_usec * 1000);
    }
    // Whether it is this limit, and not a connection's own, that made a call fail so.
    [[nodiscard]] bool is_over(long error) const noexcept {
        return error == -ETIMEDOUT && os::now() >= os::to_nanoseconds(until);
    }
};

// The limits of an attempt: a stop that was requested before. No socket has the error that it
// gives.
const limits& at_once() {
    struct refusal {
        std::stop_source source;
        std::stop_token token = source.get_token();
        limits none{deadline::min(), token};
        refusal() { source.request_stop(); }
    };
    static const refusal* const made = new refusal;  // Never destroyed: fibers outlive exit().
    return made->none;
}

// A kept descriptor with something to wait for; null for others.
descriptor* kept_one(int fd) noexcept {
    descriptor* const d = descriptor::find(fd);
    if (d == nullptr) return nullptr;
    const std::uint32_t t = d->known_traits();
    return (t & (descriptor::kept | descriptor::file)) == descriptor::kept ? d : nullptr;
}

// Makes the C library's call once the descriptor is ready, or its patience ends.
template <class Native>
long once_ready(int fd, side s, Native native) {
    if (!io::would_block(fd, s)) return native();
    const patience wait{fd, s};
    if (wait.is_none) return native();
    const result<short> r = io::poll(fd, s == side::in ? POLLIN : POLLOUT, limits{wait.until});
    if (r) return native();
    // What cannot be waited for here blocks.
    const long error = -r.error().value();
    return wait.is_over(error) ? -EAGAIN : error == -EBADF ? error : native();
}

// Otherwise accept() fails at once.
bool is_listening(int fd) noexcept {
    int is = 0;
    socklen_t bytes = sizeof is;
    return os::io_call(SYS_getsockopt, fd, SOL_SOCKET, SO_ACCEPTCONN, &is, &bytes) == 0 && is != 0;
}

// Moves data: operation(limits) is libums's call, native() the C library's. With `attempt` the
// former is first made without a wait.
template <class Operation, class Native>
long transfer(int fd, side s, bool attempt, Operation operation, Native native) {
    const descriptor* const d = kept_one(fd);
    if (d == nullptr) return once_ready(fd, s, native);
    long n = -ECANCELED;
    const bool tries = attempt && d->may_be_ready(s);
    if (tries) n = to_c(operation(at_once()));
    if (n == -ECANCELED) {
        const patience wait{fd, s};
        if (tries && wait.is_nonblocking) return -EAGAIN;
        if (wait.is_none) return native();
        n = to_c(operation(limits{wait.until}));
        if (wait.is_over(n)) return -EAGAIN;
    }
    // The kernel says so again, and sends SIGPIPE where it does.
    return n == -EPIPE && s == side::out ? native() : n;
}

// Receives. MSG_WAITALL: an attempt might return a part, and with MSG_PEEK only the kernel can wait
// for the rest.
template <class Operation, class Native>
ssize_t receive(int fd, int flags, Operation operation, Native native) {
    if (on_thread() || (flags & without_wait) != 0) return in_errno(native());
    constexpr int by_kernel = MSG_WAITALL | MSG_PEEK;
    if ((flags & by_kernel) == by_kernel) return in_errno(once_ready(fd, side::in, native));
    return in_errno(transfer(fd, side::in, (flags & MSG_WAITALL) == 0, operation, native));
}

// Moves out what is left of the pieces after `done` bytes, as the kernel does unless it must not
// wait, and returns how many bytes are out in the end.
long put_rest(const io::number_at& at, const iovec* pieces, int count, std::size_t done,
              int flags) {
    const patience wait{at.fd, side::out};
    if (wait.is_none) return static_cast<long>(done);
    const bool is_socket = (at.d->known_traits() & descriptor::is_socket) != 0;
    const limits until{wait.until};
    std::size_t skip = done;
    for (const iovec* piece = pieces; piece != pieces + count; ++piece) {
        std::size_t in = std::min(skip, piece->iov_len);
        skip -= in;
        while (in < piece->iov_len && !at.was_closed()) {
            const char* const from = static_cast<char*>(piece->iov_base) + in;
            const std::size_t left = piece->iov_len - in;
            const long n = to_c(is_socket ? io::send(at.fd, from, left, flags, until)
                                          : io::write(at.fd, from, left, until));
            // The next call returns what the kernel tells of a connection once.
            if (n < 0 && is_socket && n != -EPIPE && !wait.is_over(n) && io::is_of_the_socket(n))
                at.d->note_error(at.fd, at.generation, n);
            if (n < 0) return static_cast<long>(done);
            UMS_DEBUG_ASSERT(static_cast<std::size_t>(n) <= left, "a piece was exceeded");
            in += static_cast<std::size_t>(n);
            done += static_cast<std::size_t>(n);
        }
    }
    return static_cast<long>(done);
}

// Sends. A call that may wait returns when all of it is out.
template <class Operation, class Native>
ssize_t put(int fd, const iovec* pieces, int count, int flags, Operation operation, Native native) {
    if (on_thread() || (flags & without_wait) != 0) return in_errno(native());
    const io::number_at at{fd};
    const long n = transfer(fd, side::out, true, operation, native);
    if (n < 0 || kept_one(fd) == nullptr || at.was_closed()) return in_errno(n);
    UMS_DEBUG_ASSERT(count >= 0, "an impossible number of pieces was sent");
    std::size_t bytes = 0;
    for (int i = 0; i < count; ++i) bytes += pieces[i].iov_len;
    UMS_DEBUG_ASSERT(static_cast<std::size_t>(n) <= bytes, "more was sent than there was");
    const bool is_all = static_cast<std::size_t>(n) == bytes;
    return is_all ? n : put_rest(at, pieces, count, static_cast<std::size_t>(n), flags);
}

// Registers what a call has just made, or failed to make. `traits`: as far as they are known. The
// numbers of the standard streams are also stdio's, which may close them.
int keep(long made, std::uint32_t traits) noexcept {
    if (made < 0) return static_cast<int>(made);
    (void)at_once();  // Made here, because a handler of a signal must not be the first.
    const int fd = static_cast<int>(made);
    const bool is_known = (traits & descriptor::kept) != 0 && fd > STDERR_FILENO;
    descriptor::adopt(fd, is_known ? traits : 0);
    return fd;
}
// The same for a socket of any kind, which the kernel tells.
int keep_socket(long made) noexcept {
    const int fd = keep(made, 0);
    descriptor* const d = fd > STDERR_FILENO ? descriptor::find(fd) : nullptr;
    if (d != nullptr) d->adopt(fd);
    return fd;
}
// The same for a duplicate.
int keep_as(long made, int original) noexcept {
    constexpr std::uint32_t own = descriptor::ours | descriptor::errors;
    const descriptor* const d = kept_one(original);
    return keep(made, d != nullptr ? d->known_traits() & ~own : 0u);
}

// `duplicate` is dup2() or dup3() of the two.
template <class Duplicate>
int put_over(int from, int onto, int flags, Duplicate duplicate) {
    // Where it fails, or does nothing, `onto` stays what it is.
    const bool acts = from != onto && onto >= 0 && (flags & ~O_CLOEXEC) == 0 &&
                      os::io_call(SYS_fcntl, from, F_GETFD) >= 0;
    if (!acts) return duplicate();
    io::forget(onto);
    return keep_as(duplicate(), from);
}

int make_pipe(int ends[2], int flags) {
    const int r = ::pipe2(ends, flags);
    for (int i = 0; i < 2 && r == 0; ++i) keep(ends[i], descriptor::kept | descriptor::fifo);
    return r;
}

long poll_on_fiber(pollfd* fds, nfds_t count, const limits& l) {
    if (count == 0) return this_fiber::sleep_until(l.until), 0;
    if (count != 1 || fds->fd < 0) return to_c(io::poll(fds, count, l));
    const result<short> r = io::poll(fds->fd, fds->events, l);
    const int error = r ? 0 : r.error().value();
    if (error != 0 && error != ETIMEDOUT && error != EBADF) return -error;
    fds->revents = r ? *r : error == EBADF ? short{POLLNVAL} : short{0};
    return fds->revents != 0 ? 1 : 0;
}

long select_on_fiber(int count, fd_set* in, fd_set* out, fd_set* except, const limits& l) {
    if (count == 0) return this_fiber::sleep_until(l.until), 0;
    return to_c(io::select(count, in, out, except, l));
}

// Whether the time is null, for ever, or valid and not over: the rest is the C library's.
bool is_ahead(const timespec* limit) noexcept {
    return limit == nullptr ||
           (is_time(limit) && limit->tv_sec >= 0 && (limit->tv_sec != 0 || limit->tv_nsec != 0));
}
limits limits_of(const timespec* limit) noexcept {
    return limit == nullptr ? limits{} : limits{after(limit->tv_sec, limit->tv_nsec)};
}

}  // namespace

int* ums_errno_location() {
    // Or the compiler might find, too, that it always returns the same.
    asm volatile("" ::: "memory");
    return &errno;
}

// --- Reading and writing ---

ssize_t ums_posix_read(int fd, void* into, size_t bytes) {
    return receive(
        fd, 0, [=](const limits& l) { return io::read(fd, into, bytes, l); },
        [=] { return from_errno(::read(fd, into, bytes)); });
}

ssize_t ums_posix_readv(int fd, const iovec* into, int count) {
    return receive(
        fd, 0, [=](const limits& l) { return io::readv(fd, into, count, l); },
        [=] { return from_errno(::readv(fd, into, count)); });
}

ssize_t ums_posix_write(int fd, const void* from, size_t bytes) {
    const iovec piece{const_cast<void*>(from), bytes};
    return put(
        fd, &piece, 1, 0, [=](const limits& l) { return io::write(fd, from, bytes, l); },
        [=] { return from_errno(::write(fd, from, bytes)); });
}

ssize_t ums_posix_writev(int fd, const iovec* from, int count) {
    return put(
        fd, from, count, 0, [=](const limits& l) { return io::writev(fd, from, count, l); },
        [=] { return from_errno(::writev(fd, from, count)); });
}

// --- Sockets ---

int ums_posix_socket(int domain, int type, int protocol) {
    return keep_socket(::socket(domain, type, protocol));
}

int ums_posix_socketpair(int domain, int type, int protocol, int ends[2]) {
    const int r = ::socketpair(domain, type, protocol, ends);
    for (int i = 0; i < 2 && r == 0; ++i) keep_socket(ends[i]);
    return r;
}

ssize_t ums_posix_recv(int fd, void* into, size_t bytes, int flags) {
    return receive(
        fd, flags, [=](const limits& l) { return io::recv(fd, into, bytes, flags, l); },
        [=] { return from_errno(::recv(fd, into, bytes, flags)); });
}

ssize_t ums_posix_recvfrom(int fd, void* into, size_t bytes, int flags, sockaddr* from,
                           socklen_t* from_bytes) {
    return receive(
        fd, flags,
        [=](const limits& l) { return io::recvfrom(fd, into, bytes, flags, from, from_bytes, l); },
        [=] { return from_errno(::recvfrom(fd, into, bytes, flags, from, from_bytes)); });
}

ssize_t ums_posix_recvmsg(int fd, msghdr* message, int flags) {
    // io::recvmsg() does not wait for all, either.
    const int how = (flags & MSG_WAITALL) != 0 ? flags | MSG_PEEK : flags;
    return receive(
        fd, how, [=](const limits& l) { return io::recvmsg(fd, message, flags, l); },
        [=] { return from_errno(::recvmsg(fd, message, flags)); });
}

ssize_t ums_posix_send(int fd, const void* from, size_t bytes, int flags) {
    const iovec piece{const_cast<void*>(from), bytes};
    return put(
        fd, &piece, 1, flags, [=](const limits& l) { return io::send(fd, from, bytes, flags, l); },
        [=] { return from_errno(::send(fd, from, bytes, flags)); });
}

ssize_t ums_posix_sendto(int fd, const void* from, size_t bytes, int flags, const sockaddr* to,
                         socklen_t to_bytes) {
    const iovec piece{const_cast<void*>(from), bytes};
    return put(
        fd, &piece, 1, flags,
        [=](const limits& l) { return io::sendto(fd, from, bytes, flags, to, to_bytes, l); },
        [=] { return from_errno(::sendto(fd, from, bytes, flags, to, to_bytes)); });
}

ssize_t ums_posix_sendmsg(int fd, const msghdr* message, int flags) {
    return put(
        fd, message->msg_iov, static_cast<int>(message->msg_iovlen), flags,
        [=](const limits& l) { return io::sendmsg(fd, message, flags, l); },
        [=] { return from_errno(::sendmsg(fd, message, flags)); });
}

int ums_posix_connect(int fd, const sockaddr* to, socklen_t to_bytes) {
    const auto native = [=] { return ::connect(fd, to, to_bytes); };
    const descriptor* const d = kept_one(fd);
    if (on_thread() || d == nullptr) return native();
    const patience wait{fd, side::out};
    if (wait.is_none) return native();
    const long r = to_c(io::connect(fd, to, to_bytes, limits{wait.until}));
    return static_cast<int>(in_errno(wait.is_over(r) ? -EINPROGRESS : r));
}

int ums_posix_accept4(int fd, sockaddr* peer, socklen_t* peer_bytes, int flags) {
    constexpr std::uint32_t inherited = descriptor::kept | descriptor::is_socket | descriptor::tcp |
                                        descriptor::messages | descriptor::unix_stream;
    const auto native = [=] { return from_errno(::accept4(fd, peer, peer_bytes, flags)); };
    const bool waits = !on_thread() && is_listening(fd);
    const long made = waits ? once_ready(fd, side::in, native) : native();
    const descriptor* const door = kept_one(fd);
    return in_errno(door != nullptr ? keep(made, door->known_traits() & inherited)
                                    : keep_socket(made));
}

int ums_posix_accept(int fd, sockaddr* peer, socklen_t* peer_bytes) {
    return ums_posix_accept4(fd, peer, peer_bytes, 0);
}

// --- Waiting for descriptors ---

int ums_posix_poll(pollfd* fds, nfds_t count, int timeout_ms) {
    if (on_thread() || timeout_ms == 0) return ::poll(fds, count, timeout_ms);
    const limits l{timeout_ms < 0 ? deadline::max() : after(0, timeout_ms * 1'000'000l)};
    return static_cast<int>(in_errno(poll_on_fiber(fds, count, l)));
}

int ums_posix_ppoll(pollfd* fds, nfds_t count, const timespec* limit, const sigset_t* mask) {
    if (on_thread() || mask != nullptr || !is_ahead(limit)) return ::ppoll(fds, count, limit, mask);
    return static_cast<int>(in_errno(poll_on_fiber(fds, count, limits_of(limit))));
}

int ums_posix_select(int count, fd_set* in, fd_set* out, fd_set* except, timeval* limit) {
    const timespec time =
        limit != nullptr ? timespec{limit->tv_sec, limit->tv_usec * 1000} : timespec{};
    const timespec* const until = limit != nullptr ? &time : nullptr;
    if (on_thread() || !is_ahead(until)) return ::select(count, in, out, except, limit);
    return static_cast<int>(in_errno(select_on_fiber(count, in, out, except, limits_of(until))));
}

int ums_posix_pselect(int count, fd_set* in, fd_set* out, fd_set* except, const timespec* limit,
                      const sigset_t* mask) {
    if (on_thread() || mask != nullptr || !is_ahead(limit))
        return ::pselect(count, in, out, except, limit, mask);
    return static_cast<int>(in_errno(select_on_fiber(count, in, out, except, limits_of(limit))));
}

// --- Descriptors ---

int ums_posix_close(int fd) {
    // The number's next maker takes back what libums has of it (descriptor::adopt()).
    if (has_interrupted_libums()) return ::close(fd);
    return static_cast<int>(in_errno(to_c(io::close(fd))));
}

int ums_posix_dup(int fd) { return keep_as(::dup(fd), fd); }

int ums_posix_dup2(int from, int onto) {
    return put_over(from, onto, 0, [=] { return ::dup2(from, onto); });
}

int ums_posix_dup3(int from, int onto, int flags) {
    return put_over(from, onto, flags, [=] { return ::dup3(from, onto, flags); });
}

int ums_posix_pipe(int ends[2]) { return make_pipe(ends, 0); }

int ums_posix_pipe2(int ends[2], int flags) { return make_pipe(ends, flags); }

int ums_posix_fcntl(int fd, int command, ...) {
    va_list arguments;
    va_start(arguments, command);
    void* const argument = va_arg(arguments, void*);  // As the C library takes whatever it is.
    va_end(arguments);
    const int r = ::fcntl(fd, command, argument);
    return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? keep_as(r, fd) : r;
}

FILE* ums_posix_fdopen(int fd, const char* mode) {
    FILE* const made = ::fdopen(fd, mode);
    if (made != nullptr) io::forget(fd);
    return made;
}

// --- Sleeping ---

unsigned ums_posix_sleep(unsigned seconds) {
    if (on_thread()) return ::sleep(seconds);
    this_fiber::sleep_until(after(seconds, 0));
    return 0;
}

int ums_posix_usleep(unsigned us) {
    if (on_thread()) return ::usleep(us);
    this_fiber::sleep_until(after(0, us * 1000l));
    return 0;
}

int ums_posix_nanosleep(const timespec* time, timespec* left) {
    if (on_thread() || time == nullptr || !is_ahead(time)) return ::nanosleep(time, left);
    this_fiber::sleep_until(after(time->tv_sec, time->tv_nsec));
    return 0;
}

int ums_posix_clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* left) {
    const bool is_absolute = flags == TIMER_ABSTIME;
    if (on_thread() || time == nullptr || !is_ahead(time) || !is_clock(clock) ||
        (flags != 0 && !is_absolute))
        return ::clock_nanosleep(clock, flags, time, left);
    if (!is_absolute) return ums_posix_nanosleep(time, left);
    const auto sleep = [](std::int64_t at) {
        this_fiber::sleep_until(to_deadline(at));
        return -ETIMEDOUT;
    };
    (void)wait_by(clock, time, sleep);
    return 0;
}

// --- Names ---

int ums_posix_getaddrinfo(const char* host, const char* service, const addrinfo* hints,
                          addrinfo** found) {
    const bool is_number = hints != nullptr && (hints->ai_flags & AI_NUMERICHOST) != 0;
    if (on_thread() || host == nullptr || is_number)
        return ::getaddrinfo(host, service, hints, found);
    struct look_up {
        const char* host;
        const char* service;
        const addrinfo* hints;
        addrinfo** found;
        int result;
        long error;
    } made{host, service, hints, found, 0, 0};
    const auto call = [](void* argument) {
        auto& l = *static_cast<look_up*>(argument);
        l.result = ::getaddrinfo(l.host, l.service, l.hints, l.found);
        l.error = l.result == EAI_SYSTEM ? from_errno(-1) : 0;
    };
    if (ums_offload(call, &made) != 0) call(&made);  // There is no thread for it.
    if (made.error != 0) in_errno(made.error);
    return made.result;
}
