// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cerrno>
#include <climits>

#include "base/assert.hpp"
#include "io/away/file.hpp"
#include "io/sigpipe.hpp"
#include "io/wait/operation.hpp"
#include "ums/io.hpp"

namespace ums::io {

namespace {

using number = result<std::size_t>;

// Whether it says that the file, or a filter of the process, refuses a call with RWF_NOWAIT. A
// socket's calls have no such flag, and a firewall makes them fail with EPERM, too.
bool is_refusal(long error, long traits) noexcept {
    return error == -EOPNOTSUPP || (os::is_refused(error) && (traits & descriptor::is_socket) == 0);
}

// The same, or that a shared number has another kind of file than was learnt: see
// io/wait/descriptor.hpp.
bool is_doubtful(long error, long traits) noexcept {
    return error == -ENOTSOCK || is_refusal(error, traits);
}

// Whether the file itself keeps a read() or write() from blocking, or poll(2) is asked first.
bool cannot_block(std::uint32_t traits) noexcept {
    return (traits & (descriptor::ours | descriptor::refuses | descriptor::ask_first)) != 0;
}

// Makes one operation by what was learnt of the file, and once more if that has changed: then the
// kernel has just been asked. An adopted file does not change, but may refuse RWF_NOWAIT.
template <class Operation>
number by_traits(const number_at& at, Operation operation) {
    if (at.d == nullptr) return number::from(descriptor::why_none(at.fd));
    const long traits = at.d->learn(at.fd);
    const long n = operation(traits);
    if (n >= 0 || !is_doubtful(n, traits) || traits < 0 || (traits & descriptor::ours) != 0)
        [[likely]]
        return number::from(n);
    if ((traits & descriptor::kept) != 0 && !is_refusal(n, traits)) return number::from(n);
    const long now = at.d->learn_again(at.fd, n);
    return number::from(now == traits ? n : operation(now));
}

long read_by(long traits, const number_at& at, const iovec* into, int count, std::size_t wanted,
             const limits& l) noexcept {
    const int fd = at.fd;
    if (traits < 0) return traits;
    if ((traits & descriptor::file) != 0) return file_read(at, into, count, -1);
    if (count == 1 && wanted != 0 && (traits & descriptor::is_socket) != 0) {
        return perform(at, traits, side::in, wanted, l, [=, &at, &wanted]() noexcept {
            return receive_now(at, into->iov_base, into->iov_len, MSG_DONTWAIT, traits, wanted);
        });
    }
    const bool plain = cannot_block(static_cast<std::uint32_t>(traits));
    const bool ask_first = (traits & descriptor::ask_first) != 0;
    return perform(at, traits, side::in, wanted, l, [=]() noexcept -> long {
        if (ask_first && would_block(fd, side::in)) return -EAGAIN;
        return !plain       ? os::io_call(SYS_preadv2, fd, into, count, -1, 0, RWF_NOWAIT)
               : count == 1 ? os::io_call(SYS_read, fd, into->iov_base, into->iov_len)
                            : os::io_call(SYS_readv, fd, into, count);
    });
}

number read_pieces(int fd, const iovec* into, int count, std::size_t wanted, const limits& l) {
    const number_at at{fd};
    return by_traits(
        at, [&](long traits) noexcept { return read_by(traits, at, into, count, wanted, l); });
}

long write_in_parts(const number_at& at, const iovec* from, int count, const limits& l) noexcept;

long write_by(long traits, const number_at& at, const iovec* from, int count,
              const limits& l) noexcept {
    const int fd = at.fd;
    if (traits < 0) return traits;
    if ((traits & descriptor::file) != 0) return file_write(at, from, count, -1);
    if ((traits & descriptor::is_socket) != 0) {
        return perform_write(at, traits, l, [=]() noexcept {
            if (count == 1) [[likely]]
                return os::io_call(SYS_sendto, fd, from->iov_base, from->iov_len,
                                   MSG_NOSIGNAL | MSG_DONTWAIT, nullptr, 0);
            msghdr message{};
            message.msg_iov = const_cast<iovec*>(from);
            message.msg_iovlen = static_cast<std::size_t>(count);
            return os::io_call(SYS_sendmsg, fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        });
    }
    const std::size_t bytes = count == 1 ? from->iov_len : total(from, count);
    const bool ask_first = (traits & descriptor::ask_first) != 0;
    if (ask_first && bytes > PIPE_BUF) return write_in_parts(at, from, count, l);
    const int flags = cannot_block(static_cast<std::uint32_t>(traits)) ? 0 : RWF_NOWAIT;
    const bool is_fifo = (traits & descriptor::fifo) != 0;
    return perform_write(at, traits, l, [=]() noexcept -> long {
        if (ask_first && would_block(fd, side::out)) return -EAGAIN;
        return write_without_sigpipe(fd, from, count, bytes, flags, is_fifo);
    });
}

number write_pieces(int fd, const iovec* from, int count, const limits& l) {
    const number_at at{fd};
    return by_traits(at,
                     [&](long traits) noexcept { return write_by(traits, at, from, count, l); });
}

// Writes to a blocking descriptor, as to any other: all of it, or what could be done within the
// limits. A descriptor that is ready takes PIPE_BUF bytes without a wait.
[[gnu::noinline]] long write_in_parts(const number_at& at, const iovec* from, int count,
                                      const limits& l) noexcept {
    const file_at file{at};
    std::size_t done = 0;
    for (const iovec* v = from; v != from + count; ++v) {
        for (std::size_t in = 0; in < v->iov_len;) {
            const iovec part{static_cast<char*>(v->iov_base) + in,
                             std::min<std::size_t>(v->iov_len - in, PIPE_BUF)};
            const number n = write_pieces(at.fd, &part, 1, l);
            if (!n || *n == 0) return done != 0 ? static_cast<long>(done) : n.number();
            UMS_DEBUG_ASSERT(*n <= part.iov_len, "a part was written that is longer than given");
            in += *n;
            done += *n;
            if (file.is_gone()) return static_cast<long>(done);
        }
    }
    return static_cast<long>(done);
}

}  // namespace

number read(int fd, void* into, std::size_t bytes, const limits& l) {
    const iovec one{into, bytes};
    return read_pieces(fd, &one, 1, bytes, l);
}

number write(int fd, const void* from, std::size_t bytes, const limits& l) {
    const iovec one{const_cast<void*>(from), bytes};
    return write_pieces(fd, &one, 1, l);
}

number readv(int fd, const iovec* into, int count, const limits& l) {
    if (count < 0 || count > IOV_MAX) return number::failure(EINVAL);
    return read_pieces(fd, into, count, 0, l);
}

number writev(int fd, const iovec* from, int count, const limits& l) {
    if (count < 0 || count > IOV_MAX) return number::failure(EINVAL);
    return write_pieces(fd, from, count, l);
}

result<void> read_all(int fd, void* into, std::size_t bytes, const limits& l) {
    const file_at file{number_at{fd}};
    auto* at = static_cast<char*>(into);
    while (bytes != 0) {
        const number n = read(fd, at, bytes, l);
        if (!n) return result<void>::from(n.number());
        if (*n == 0) return result<void>::failure(ENOMSG);
        UMS_DEBUG_ASSERT(*n <= bytes, "more bytes were read than there is room for");
        at += *n;
        bytes -= *n;
        if (bytes != 0 && file.is_gone()) return result<void>::failure(EBADF);
    }
    return {};
}

result<void> write_all(int fd, const void* from, std::size_t bytes, const limits& l) {
    const file_at file{number_at{fd}};
    const auto* at = static_cast<const char*>(from);
    while (bytes != 0) {
        const number n = write(fd, at, bytes, l);
        if (!n) return result<void>::from(n.number());
        UMS_DEBUG_ASSERT(*n <= bytes, "more bytes were written than there were");
        at += *n;
        bytes -= *n;
        if (bytes != 0 && file.is_gone()) return result<void>::failure(EBADF);
    }
    return {};
}

}  // namespace ums::io
