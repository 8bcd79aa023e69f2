// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cerrno>
#include <climits>
#include <fcntl.h>
#include <optional>

#include "io/away/file.hpp"
#include "io/sigpipe.hpp"
#include "io/wait/operation.hpp"
#include "io/wait/shortage.hpp"
#include "os/own_number.hpp"
#include "ums/io.hpp"

namespace ums::io {

namespace {

using number = result<std::size_t>;

bool lingers(int fd) noexcept {
    linger value{};
    socklen_t bytes = sizeof value;
    return os::io_call(SYS_getsockopt, fd, SOL_SOCKET, SO_LINGER, &value, &bytes) == 0 &&
           value.l_onoff != 0 && value.l_linger != 0;
}

}  // namespace

result<void> close(int fd) {
    descriptor* d = descriptor::find(fd);
    // Without memory nothing is known of the number.
    if (d == nullptr) return result<void>::from(os::io_call(SYS_close, fd));
    // The last close of a connection with SO_LINGER waits for the peer. So a duplicate waits, after
    // the number is free and the descriptor's lock is released.
    long last = -1;
    if ((d->known_traits() & descriptor::tcp) != 0 && lingers(fd))
        last = os::io_call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, os::lowest_for_a_moment);
    const long r = d->close(fd);
    if (r == 0) shortage::end();
    if (last >= 0) {
        const auto call = [=]() noexcept { return os::io_call(SYS_close, last), 0l; };
        if (away(call) == -EAGAIN) call();
    }
    return result<void>::from(r);
}

void forget(int fd) noexcept {
    if (descriptor* d = descriptor::find(fd); d != nullptr) d->forget(fd);
}

result<void> adopt(int fd) {
    descriptor* d = descriptor::find(fd);
    return result<void>::from(d != nullptr ? d->adopt(fd) : descriptor::why_none(fd));
}

result<int> dup(int fd) {
    descriptor* d = descriptor::find(fd);
    if (d == nullptr) return result<int>::failure(static_cast<int>(-descriptor::why_none(fd)));
    const long traits = d->ask(fd);
    if (traits < 0) return result<int>::failure(static_cast<int>(-traits));
    const long made = os::io_call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 0);
    if (made < 0) return result<int>::failure(static_cast<int>(-made));
    const std::uint32_t same =
        static_cast<std::uint32_t>(traits) & ~std::uint32_t{descriptor::errors};
    // A duplicate of a kept one is kept. Of the others, that of a standard stream stays blocking,
    // and files are asked about each time.
    const bool is_same =
        (same & (descriptor::kept | descriptor::ask_first | descriptor::file)) != 0;
    descriptor::adopt(static_cast<int>(made), is_same ? same : same | descriptor::made_here);
    return static_cast<int>(made);
}

result<void> pipe(int ends[2]) {
    const long r = os::io_call(SYS_pipe2, ends, O_NONBLOCK | O_CLOEXEC);
    if (r == 0) {
        for (int i = 0; i < 2; ++i)
            descriptor::adopt(ends[i], descriptor::made_here | descriptor::fifo);
        descriptor::pair_up(ends[0], ends[1]);
    }
    return result<void>::from(r);
}

number sendfile(int out, int in, off_t* offset, std::size_t bytes, const limits& l) {
    const number_at from{in}, to{out};
    if (from.d == nullptr) return number::from(descriptor::why_none(in));
    if (to.d == nullptr) return number::from(descriptor::why_none(out));
    const long traits = to.d->ask(out);
    if (traits < 0) return number::from(traits);
    // A blocking descriptor that is ready takes that much without a wait.
    const bool asks = may_block(out, traits);
    if (asks) bytes = std::min<std::size_t>(bytes, PIPE_BUF);
    std::optional<file_at> source;  // There is one as soon as there was a wait.
    return number::from(perform_write(to, traits, l, [=, &source]() noexcept -> long {
        if (from.was_closed() || (source.has_value() && source->is_gone())) return -EBADF;
        long n = -EAGAIN;
        if (!asks || !would_block(out, side::out)) {
            auto call = [=] { return os::io_call(SYS_sendfile, out, in, offset, bytes); };
            n = without_sigpipe(bytes, call);
        }
        if (n == -EAGAIN && !source.has_value()) source.emplace(from);
        return n;
    }));
}

number splice(int in, off_t* in_offset, int out, off_t* out_offset, std::size_t bytes,
              unsigned flags, const limits& l) {
    const number_at from{in}, to{out};
    if (from.d == nullptr) return number::from(descriptor::why_none(in));
    if (to.d == nullptr) return number::from(descriptor::why_none(out));
    // SPLICE_F_NONBLOCK is for pipes only: a socket must be non-blocking itself.
    const long in_traits = from.d->ask(in), out_traits = to.d->ask(out);
    if (in_traits < 0) return number::from(in_traits);
    if (out_traits < 0) return number::from(out_traits);
    const bool in_asks = may_block(in, in_traits), out_asks = may_block(out, out_traits);
    auto call = [=]() noexcept {
        return os::io_call(SYS_splice, in, in_offset, out, out_offset, bytes,
                           flags | SPLICE_F_NONBLOCK);
    };
    auto attempt = [&]() noexcept -> long {
        if ((in_asks && would_block(in, side::in)) || (out_asks && would_block(out, side::out)))
            return -EAGAIN;
        return without_sigpipe(bytes, call);
    };
    for (;;) {
        const long n = without_interruption(attempt);
        to.d->wake_other_end(n);
        if (n != -EAGAIN) return number::from(n);
        const file_at source{from}, target{to};
        // One of the two is not ready; the call does not say which.
        const side s = would_block(in, side::in) ? side::in : side::out;
        const result<short> r = s == side::in ? poll(in, POLLIN, l) : poll(out, POLLOUT, l);
        if (!r) return number::failure(r.error().value());
        // The wait only looked, and at one of them.
        if (source.is_gone() || target.is_gone()) return number::failure(EBADF);
    }
}

}  // namespace ums::io
