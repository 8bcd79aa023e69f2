// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <netinet/in.h>
#include <optional>

#include "base/assert.hpp"
#include "io/away/file.hpp"
#include "io/wait/operation.hpp"
#include "io/wait/shortage.hpp"
#include "os/own_number.hpp"
#include "ums/io.hpp"

namespace ums::io {

namespace {

using number = result<std::size_t>;

result<int> to_descriptor(long fd, std::uint32_t traits) {
    if (fd < 0) return result<int>::failure(static_cast<int>(-fd));
    descriptor::adopt(static_cast<int>(fd), traits);
    return static_cast<int>(fd);
}

// The traits of a socket of this type.
constexpr std::uint32_t of_type(int type) noexcept {
    constexpr std::uint32_t any = descriptor::made_here | descriptor::is_socket;
    return (type & 0xff) == SOCK_STREAM ? any : any | descriptor::messages;
}
constexpr std::uint32_t of_type(int domain, int type) noexcept {
    const bool is_unix = domain == AF_UNIX && (type & 0xff) == SOCK_STREAM;
    return of_type(type) | (is_unix ? descriptor::unix_stream : 0u);
}

// An error that accept(2) reports of the new connection, or of the network: the next accept may
// succeed.
bool is_passing(long error) noexcept {
    switch (error) {
        case -ECONNABORTED:
        case -EPROTO:
        case -ENETDOWN:
        case -ENOPROTOOPT:
        case -EHOSTDOWN:
        case -ENONET:
        case -EHOSTUNREACH:
        case -ENETUNREACH:
            return true;
        default:
            return false;
    }
}

bool is_shortage(long error) noexcept {
    return error == -EMFILE || error == -ENFILE || error == -ENOBUFS || error == -ENOMEM;
}

bool is_unix(const sockaddr* to, std::size_t bytes) noexcept {
    return to != nullptr && bytes >= sizeof to->sa_family && to->sa_family == AF_UNIX;
}

// Connects to a Unix socket whose listener's queue is full: there is nothing to wait for but the
// call itself. It changes the socket's flags and time limit for a twentieth of a second at most.
// The number is held meanwhile, so a close waits until they are as they were.
long connect_blocking(const number_at& n, const sockaddr* to, socklen_t bytes,
                      const limits& l) noexcept {
    const os::nanoseconds until = os::to_nanoseconds(l.until);
    const std::stop_token* stop = l.stop;
    constexpr long still_full = 1;
    const file_at file{n};
    for (;;) {
        if (file.is_gone()) return -EBADF;
        const long r =
            away_on(n, descriptor::hold::several_calls, [=, fd = n.fd]() noexcept -> long {
                const long flags = os::io_call(SYS_fcntl, fd, F_GETFL);
                if (flags < 0) return flags;
                timeval before{};
                socklen_t size = sizeof before;
                os::io_call(SYS_getsockopt, fd, SOL_SOCKET, SO_SNDTIMEO, &before, &size);
                os::nanoseconds ns = 50'000'000;
                if (until != os::never) ns = std::min(ns, std::max(until - os::now(), 1000l));
                const timeval piece{0, ns / 1000};
                os::io_call(SYS_setsockopt, fd, SOL_SOCKET, SO_SNDTIMEO, &piece, sizeof piece);
                os::io_call(SYS_fcntl, fd, F_SETFL, flags & ~O_NONBLOCK);
                const long done = os::io_call(SYS_connect, fd, to, bytes);
                os::io_call(SYS_fcntl, fd, F_SETFL, flags);
                os::io_call(SYS_setsockopt, fd, SOL_SOCKET, SO_SNDTIMEO, &before, sizeof before);
                return done == -EAGAIN || done == -EINTR ? still_full : done;
            });
        if (r != still_full) return r;
        if (stop != nullptr && stop->stop_requested()) return -ECANCELED;
        if (until != os::never && os::now() >= until) return -ETIMEDOUT;
    }
}

// Whether a receive with these flags removes the data that it returns.
constexpr bool consumes(int flags) noexcept {
    return (flags & ~(MSG_DONTWAIT | MSG_NOSIGNAL | MSG_CMSG_CLOEXEC)) == 0;
}

// Whether a receive with these flags waits for all bytes. The kernel does so for streams, but not
// on a non-blocking descriptor.
bool takes_all(int fd, int flags) noexcept {
    if ((flags & MSG_WAITALL) == 0 || (flags & MSG_PEEK) != 0) return false;
    descriptor* d = descriptor::find(fd);
    const long traits = d != nullptr ? d->ask(fd) : -EBADF;
    return traits >= 0 && (traits & descriptor::messages) == 0;
}

template <class Call>
long receive(int fd, std::size_t wanted, int flags, const limits& l, Call call) noexcept {
    // These take what lies beside the data, so an attempt says nothing about the data; the kernel
    // does not wait for them either.
    if ((flags & (MSG_ERRQUEUE | MSG_OOB)) != 0) return without_interruption(call);
    const number_at at{fd};
    if (at.d == nullptr) return descriptor::why_none(fd);
    const long traits = at.d->recall(fd);
    // These calls do not ask why a Unix stream gave less: see receive_now().
    if ((traits & descriptor::unix_stream) != 0) wanted = 0;
    return perform(at, traits, side::in, wanted, l, call);
}

// The kernel never returns this error here.
constexpr long receiver_is_full = -EXFULL;

// Waits until a Unix socket that keeps messages apart has room. Returns 0 if it is worth another
// try. The kernel tells only a sender that is connected to it, so the wait takes a twentieth of a
// second at most; the sender's own socket may be closed meanwhile, which is not seen here.
long wait_for_room(const sockaddr* to, std::size_t bytes, const limits& l) {
    const long made =
        os::io_call(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const result<int> watch =
        to_descriptor(os::out_of_the_way(made, os::lowest_for_a_moment), of_type(SOCK_DGRAM));
    if (!watch) return shortage::wait(l);
    long r = os::io_call(SYS_connect, *watch, to, bytes);
    if (r == 0) {
        const deadline soon = deadline_after(std::chrono::milliseconds{50});
        const result<short> ready = poll(*watch, POLLOUT, not_beyond(soon, l));
        r = ready ? 0 : -ready.error().value();
        if (r == -ETIMEDOUT && l.until > soon) r = 0;
    } else {
        r = shortage::wait(l);
    }
    close(*watch);
    return r;
}

// `name` returns the message's destination, as in a msghdr; it is called after the kernel has
// looked at it.
template <class Call, class Name>
long send_to(int fd, const limits& l, Call call, Name name) noexcept {
    const number_at at{fd};
    if (at.d == nullptr) return descriptor::why_none(fd);
    long gave_up = 0;
    for (;;) {
        const long n = perform_write(at, at.d->recall(fd), l, [=]() noexcept -> long {
            const long r = call();
            if (r != -EAGAIN) [[likely]]
                return r;
            // Either the receiver has no room, or the sender.
            const msghdr m = name();
            const auto* to = static_cast<const sockaddr*>(m.msg_name);
            return is_unix(to, m.msg_namelen) && !would_block(fd, side::out) ? receiver_is_full : r;
        });
        if (n != receiver_is_full) return n;
        if (gave_up != 0) return gave_up;
        const file_at file{at};
        const msghdr m = name();
        const long r = wait_for_room(static_cast<const sockaddr*>(m.msg_name), m.msg_namelen, l);
        if (file.is_gone()) return -EBADF;
        if (r == -ETIMEDOUT || r == -ECANCELED)
            gave_up = r;
        else if (r != 0)
            return r;
    }
}

}  // namespace

number recv(int fd, void* into, std::size_t bytes, int flags, const limits& l) {
    if ((flags & MSG_WAITALL) != 0) return recvfrom(fd, into, bytes, flags, nullptr, nullptr, l);
    if (consumes(flags)) {
        const number_at at{fd};
        if (at.d == nullptr) return number::from(descriptor::why_none(fd));
        const long traits = at.d->recall(fd);
        std::size_t wanted = bytes;
        return number::from(perform(at, traits, side::in, wanted, l, [=, &wanted]() noexcept {
            return receive_now(at, into, bytes, flags | MSG_DONTWAIT, traits, wanted);
        }));
    }
    return number::from(receive(fd, 0, flags, l, [=]() noexcept {
        return os::io_call(SYS_recvfrom, fd, into, bytes, flags | MSG_DONTWAIT);
    }));
}

number send(int fd, const void* from, std::size_t bytes, int flags, const limits& l) {
    const number_at at{fd};
    if (at.d == nullptr) return number::from(descriptor::why_none(fd));
    return number::from(perform_write(at, at.d->recall(fd), l, [=]() noexcept {
        return os::io_call(SYS_sendto, fd, from, bytes, flags | MSG_NOSIGNAL | MSG_DONTWAIT,
                           nullptr, 0);
    }));
}

number recvfrom(int fd, void* into, std::size_t bytes, int flags, sockaddr* from,
                socklen_t* from_bytes, const limits& l) {
    const number_at begun{fd};
    const bool all = takes_all(fd, flags);
    const int once = (flags & ~MSG_WAITALL) | MSG_DONTWAIT;
    std::optional<file_at> file;
    std::size_t done = 0;
    for (;;) {
        UMS_DEBUG_ASSERT(done <= bytes, "more bytes were received than there is room for");
        auto* at = static_cast<char*>(into) + done;
        const std::size_t rest = bytes - done;
        long told = 0;  // By the kernel, unlike the end of the limits.
        const auto call = [=, &told]() noexcept {
            return told = os::io_call(SYS_recvfrom, fd, at, rest, once, from, from_bytes);
        };
        const long n = receive(fd, consumes(flags) || all ? rest : 0, flags, l, call);
        if (n <= 0 && done == 0) return number::from(n);
        if (n < 0 && n == told && is_of_the_socket(n)) begun.d->note_error(fd, begun.generation, n);
        if (n <= 0) return done;
        done += static_cast<std::size_t>(n);
        if (!all || done >= bytes) return done;
        if (file.has_value() ? file->is_gone() : begun.was_closed()) return done;
        if (!file.has_value()) file.emplace(begun);
    }
}

number sendto(int fd, const void* from, std::size_t bytes, int flags, const sockaddr* to,
              socklen_t to_bytes, const limits& l) {
    if (to == nullptr) return send(fd, from, bytes, flags, l);
    const auto call = [=]() noexcept {
        return os::io_call(SYS_sendto, fd, from, bytes, flags | MSG_NOSIGNAL | MSG_DONTWAIT, to,
                           to_bytes);
    };
    const auto name = [=]() noexcept {
        msghdr m{};
        m.msg_name = const_cast<sockaddr*>(to);
        m.msg_namelen = to_bytes;
        return m;
    };
    return number::from(send_to(fd, l, call, name));
}

number recvmsg(int fd, msghdr* message, int flags, const limits& l) {
    return number::from(receive(fd, 0, flags, l, [=]() noexcept {
        return os::io_call(SYS_recvmsg, fd, message, (flags & ~MSG_WAITALL) | MSG_DONTWAIT);
    }));
}

number sendmsg(int fd, const msghdr* message, int flags, const limits& l) {
    const auto call = [=]() noexcept {
        return os::io_call(SYS_sendmsg, fd, message, flags | MSG_NOSIGNAL | MSG_DONTWAIT);
    };
    return number::from(send_to(fd, l, call, [=]() noexcept { return *message; }));
}

number recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags, const limits& l) {
    return number::from(receive(fd, 0, flags, l, [=]() noexcept {
        return os::io_call(SYS_recvmmsg, fd, messages, count,
                           (flags & ~MSG_WAITFORONE) | MSG_DONTWAIT, nullptr);
    }));
}

number sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags, const limits& l) {
    const auto call = [=]() noexcept {
        return os::io_call(SYS_sendmmsg, fd, messages, count, flags | MSG_NOSIGNAL | MSG_DONTWAIT);
    };
    return number::from(send_to(fd, l, call, [=]() noexcept { return messages->msg_hdr; }));
}

result<int> socket(int domain, int type, int protocol) {
    const long fd = os::io_call(SYS_socket, domain, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol);
    const bool tcp = (domain == AF_INET || domain == AF_INET6) && (type & 0xff) == SOCK_STREAM &&
                     (protocol == 0 || protocol == IPPROTO_TCP);
    return to_descriptor(fd, of_type(domain, type) | (tcp ? descriptor::tcp : 0u));
}

result<void> socketpair(int domain, int type, int protocol, int ends[2]) {
    const long r =
        os::io_call(SYS_socketpair, domain, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol, ends);
    if (r == 0) {
        for (int i = 0; i < 2; ++i) descriptor::adopt(ends[i], of_type(domain, type));
        // A datagram socket may be connected to another one later.
        const int kind = type & 0xff;
        if (kind == SOCK_STREAM || kind == SOCK_SEQPACKET) descriptor::pair_up(ends[0], ends[1]);
    }
    return result<void>::from(r);
}

result<void> connect(int fd, const sockaddr* to, socklen_t to_bytes, const limits& l) {
    const number_at begun{fd};
    if (begun.d == nullptr) return result<void>::from(descriptor::why_none(fd));
    const long traits = begun.d->ask(fd);
    if (traits < 0) return result<void>::from(traits);
    // The call itself takes no time then.
    const long flags = may_block(fd, traits) ? os::io_call(SYS_fcntl, fd, F_GETFL) : -1;
    if (flags >= 0) os::io_call(SYS_fcntl, fd, F_SETFL, flags | O_NONBLOCK);
    long r = os::io_call(SYS_connect, fd, to, to_bytes);
    if (flags >= 0) os::io_call(SYS_fcntl, fd, F_SETFL, flags);
    if (r == -EAGAIN && is_unix(to, to_bytes))
        return result<void>::from(connect_blocking(begun, to, to_bytes, l));
    if (r != -EINPROGRESS && r != -EALREADY && r != -EINTR) return result<void>::from(r);
    r = perform(begun, traits, side::out, l, [=]() noexcept -> long {
        if (would_block(fd, side::out)) return -EAGAIN;
        // SO_ERROR would leave a TCP socket between two states, and the next connect() would get
        // ECONNABORTED.
        if ((traits & descriptor::tcp) != 0) {
            const long end = os::io_call(SYS_connect, fd, to, to_bytes);
            if (end == -EALREADY || end == -EINPROGRESS) return -EAGAIN;
            return end == -EISCONN ? 0 : end;  // Another caller has asked first.
        }
        int error = 0;
        socklen_t bytes = sizeof error;
        const long asked = os::io_call(SYS_getsockopt, fd, SOL_SOCKET, SO_ERROR, &error, &bytes);
        return asked < 0 ? asked : -error;
    });
    return result<void>::from(r);
}

result<int> accept(int fd, sockaddr* peer, socklen_t* peer_bytes, const limits& l) {
    const number_at at{fd};
    if (at.d == nullptr) return result<int>::failure(static_cast<int>(-descriptor::why_none(fd)));
    const long traits = at.d->ask(fd);
    if (traits < 0) return result<int>::failure(static_cast<int>(-traits));
    const bool asks = may_block(fd, traits);
    // What a connection inherits from its listener.
    const auto inherited = static_cast<std::uint32_t>(traits) &
                           (descriptor::tcp | descriptor::messages | descriptor::unix_stream);
    for (;;) {
        const long made = perform(at, traits, side::in, l, [=]() noexcept -> long {
            if (asks && would_block(fd, side::in)) return -EAGAIN;
            return os::io_call(SYS_accept4, fd, peer, peer_bytes, SOCK_NONBLOCK | SOCK_CLOEXEC);
        });
        if (is_passing(made)) continue;
        if (is_shortage(made)) {
            const file_at file{at};
            if (const long r = shortage::wait(l); r != 0)
                return result<int>::failure(static_cast<int>(-r));
            if (file.is_gone()) return result<int>::failure(EBADF);
            continue;
        }
        return to_descriptor(made, descriptor::made_here | descriptor::is_socket | inherited);
    }
}

result<void> shutdown(int fd, int how) {
    return result<void>::from(os::io_call(SYS_shutdown, fd, how));
}

}  // namespace ums::io
