// SPDX-License-Identifier: MIT
//
// Reads and writes of files: data in the page cache is read at once (RWF_NOWAIT); the rest goes to
// the off-load pool.

#include "io/away/file.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/uio.h>

#include "io/wait/descriptor.hpp"
#include "ums/io.hpp"

namespace ums::io {

long file_read(const number_at& at, const iovec* into, int count, off_t offset) noexcept {
    const int fd = at.fd;
    long n = os::io_call(SYS_preadv2, fd, into, count, offset, 0, RWF_NOWAIT);
    // This is the end, a final error, or all of it.
    if (n == 0 || (n > 0 && static_cast<std::size_t>(n) == total(into, count))) return n;
    // The offset has already moved, so return what a signal would have left.
    if (n > 0 && offset < 0) return n;
    const bool is_refusal = n == -EOPNOTSUPP || os::is_refused(n);
    if (n < 0 && n != -EAGAIN && n != -EINTR && !is_refusal) return n;
    // Not preadv2(): a filter that does not know it refuses it.
    const long number = offset < 0 ? SYS_readv : SYS_preadv;
    return away_on(at, number,
                   [=]() noexcept { return os::io_call(number, fd, into, count, offset, 0); });
}

long file_write(const number_at& at, const iovec* from, int count, off_t offset) noexcept {
    const long number = offset < 0 ? SYS_writev : SYS_pwritev;
    return away_on(at, number, [=, fd = at.fd]() noexcept {
        return os::io_call(number, fd, from, count, offset, 0);
    });
}

// SYS_fsync or SYS_fdatasync.
static result<void> sync(int fd, long number) {
    const auto call = [=]() noexcept { return os::io_call(number, fd); };
    return result<void>::from(away_on(number_at{fd}, number, call));
}

result<std::size_t> pread(int fd, void* into, std::size_t bytes, off_t offset) {
    if (offset < 0) return result<std::size_t>::failure(EINVAL);
    const iovec one{into, bytes};
    return result<std::size_t>::from(file_read(number_at{fd}, &one, 1, offset));
}

result<std::size_t> pwrite(int fd, const void* from, std::size_t bytes, off_t offset) {
    if (offset < 0) return result<std::size_t>::failure(EINVAL);
    const iovec one{const_cast<void*>(from), bytes};
    return result<std::size_t>::from(file_write(number_at{fd}, &one, 1, offset));
}

result<void> fsync(int fd) { return sync(fd, SYS_fsync); }
result<void> fdatasync(int fd) { return sync(fd, SYS_fdatasync); }

result<int> open(const char* path, int flags, mode_t mode) {
    const long fd = away([=]() noexcept {
        return os::io_call(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, mode);
    });
    if (fd < 0) return result<int>::failure(static_cast<int>(-fd));
    descriptor::adopt(static_cast<int>(fd), 0);
    return static_cast<int>(fd);
}

}  // namespace ums::io
