// SPDX-License-Identifier: MIT
#include <cerrno>
#include <fcntl.h>

#include "io/operation.hpp"
#include "io/shortage.hpp"
#include "io/sigpipe.hpp"
#include "ums/io.hpp"

namespace ums::io {

namespace {
using number = result<std::size_t>;
}

result<void> close(int fd) {
    descriptor* d = descriptor::find(fd);
    const long r = d != nullptr ? d->close(fd) : -EBADF;
    if (r == 0) shortage::end();
    return result<void>::from(r);
}

result<int> dup(int fd) {
    descriptor* d = descriptor::find(fd);
    if (d == nullptr) return result<int>::failure(EBADF);
    const long traits = d->learn(fd);
    if (traits < 0) return result<int>::failure(static_cast<int>(-traits));
    const long made = os::io_call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 0);
    if (made < 0) return result<int>::failure(static_cast<int>(-made));
    descriptor::adopt(static_cast<int>(made), static_cast<std::uint32_t>(traits));
    return static_cast<int>(made);
}

result<void> pipe(int ends[2]) {
    const long r = os::io_call(SYS_pipe2, ends, O_NONBLOCK | O_CLOEXEC);
    if (r == 0)
        for (int i = 0; i < 2; ++i) descriptor::adopt(ends[i], descriptor::known);
    return result<void>::from(r);
}

number sendfile(int out, int in, off_t* offset, std::size_t bytes, const limits& l) {
    descriptor* d = descriptor::find(out);
    if (d == nullptr) return number::failure(EBADF);
    return number::from(perform(*d, out, side::out, 0, l, [=]() noexcept {
        auto call = [=]() noexcept { return os::io_call(SYS_sendfile, out, in, offset, bytes); };
        return without_sigpipe(call);
    }));
}

number splice(int in, off_t* in_offset, int out, off_t* out_offset, std::size_t bytes,
              unsigned flags, const limits& l) {
    descriptor* from = descriptor::find(in);
    descriptor* to = descriptor::find(out);
    if (from == nullptr || to == nullptr) return number::failure(EBADF);
    auto call = [=]() noexcept {
        return os::io_call(SYS_splice, in, in_offset, out, out_offset, bytes,
                           flags | SPLICE_F_NONBLOCK);
    };
    auto attempt = [&]() noexcept { return without_sigpipe(call); };
    for (;;) {
        const long n = without_interruption(attempt);
        if (n != -EAGAIN) return number::from(n);
        // One of the two is not ready, and the call does not say which.
        const side s = would_block(in, side::in) ? side::in : side::out;
        const result<short> r = s == side::in ? poll(in, POLLIN, l) : poll(out, POLLOUT, l);
        if (!r) return number::failure(r.error().value());
    }
}

}  // namespace ums::io
