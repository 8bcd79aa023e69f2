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

number read_pieces(int fd, const iovec* into, int count, std::size_t wanted, const limits& l) {
    const number_at begun{fd};
    descriptor* const d = begun.d;
    if (d == nullptr) return number::from(descriptor::why_none(fd));
    const long traits = d->learn(fd);
    if (traits < 0) return number::from(traits);
    if ((traits & descriptor::file) != 0) return number::from(file_read(begun, into, count, -1));
    // Another library's blocking file may have the number by now. Only from a socket can one
    // receive without a wait all the same.
    if (count == 1 && wanted != 0 && (traits & descriptor::is_socket) != 0) {
        return number::from(perform(*d, fd, side::in, wanted, l, [=]() noexcept {
            return os::io_call(SYS_recvfrom, fd, into->iov_base, into->iov_len, MSG_DONTWAIT);
        }));
    }
    return number::from(perform(*d, fd, side::in, wanted, l, [=]() noexcept {
        return count == 1 ? os::io_call(SYS_read, fd, into->iov_base, into->iov_len)
                          : os::io_call(SYS_readv, fd, into, count);
    }));
}

number write_in_parts(int fd, const iovec* from, int count, const limits& l);

number write_pieces(int fd, const iovec* from, int count, const limits& l) {
    const number_at begun{fd};
    descriptor* const d = begun.d;
    if (d == nullptr) return number::from(descriptor::why_none(fd));
    const long traits = d->learn(fd);
    if (traits < 0) return number::from(traits);
    if ((traits & descriptor::file) != 0) return number::from(file_write(begun, from, count, -1));
    if ((traits & descriptor::is_socket) != 0) {
        msghdr message{};
        message.msg_iov = const_cast<iovec*>(from);
        message.msg_iovlen = static_cast<std::size_t>(count);
        return number::from(perform(*d, fd, side::out, 0, l, [&]() noexcept {
            return count == 1 ? os::io_call(SYS_sendto, fd, from->iov_base, from->iov_len,
                                            MSG_NOSIGNAL | MSG_DONTWAIT, nullptr, 0)
                              : os::io_call(SYS_sendmsg, fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        }));
    }
    const std::size_t bytes = count == 1 ? from->iov_len : total(from, count);
    if ((traits & descriptor::ask_first) != 0 && bytes > PIPE_BUF)
        return write_in_parts(fd, from, count, l);
    return number::from(perform(*d, fd, side::out, 0, l, [=]() noexcept {
        auto call = [=]() noexcept { return os::io_call(SYS_writev, fd, from, count); };
        return without_sigpipe(bytes, call);
    }));
}

// Writes to a blocking descriptor, as to any other: all of it, or what could be done within the
// limits. A descriptor that is ready takes PIPE_BUF bytes without a wait.
[[gnu::noinline]] number write_in_parts(int fd, const iovec* from, int count, const limits& l) {
    const number_at begun{fd};
    std::size_t done = 0;
    for (const iovec* v = from; v != from + count; ++v) {
        for (std::size_t at = 0; at < v->iov_len;) {
            const iovec part{static_cast<char*>(v->iov_base) + at,
                             std::min<std::size_t>(v->iov_len - at, PIPE_BUF)};
            const number n = write_pieces(fd, &part, 1, l);
            if (!n || *n == 0) return done != 0 ? number{done} : n;
            UMS_DEBUG_ASSERT(*n <= part.iov_len, "a part was written that is longer than given");
            at += *n;
            done += *n;
            if (begun.was_closed()) return done;
        }
    }
    return done;
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
    const number_at begun{fd};
    auto* at = static_cast<char*>(into);
    while (bytes != 0) {
        const number n = read(fd, at, bytes, l);
        if (!n) return result<void>::from(n.number());
        if (*n == 0) return result<void>::failure(ENOMSG);
        UMS_DEBUG_ASSERT(*n <= bytes, "more bytes were read than there is room for");
        at += *n;
        bytes -= *n;
        if (bytes != 0 && begun.was_closed()) return result<void>::failure(EBADF);
    }
    return {};
}

result<void> write_all(int fd, const void* from, std::size_t bytes, const limits& l) {
    const number_at begun{fd};
    const auto* at = static_cast<const char*>(from);
    while (bytes != 0) {
        const number n = write(fd, at, bytes, l);
        if (!n) return result<void>::from(n.number());
        UMS_DEBUG_ASSERT(*n <= bytes, "more bytes were written than there were");
        at += *n;
        bytes -= *n;
        if (bytes != 0 && begun.was_closed()) return result<void>::failure(EBADF);
    }
    return {};
}

}  // namespace ums::io
