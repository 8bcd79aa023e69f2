// SPDX-License-Identifier: MIT
#pragma once

// io/away/file.hpp: calls that block on a disk, made away from the carrier.

#include <sys/types.h>
#include <sys/uio.h>

#include "os/io_calls.hpp"
#include "sched/run/park.hpp"
#include "ums/offload.hpp"

namespace ums::io {

// Makes the call on a thread of the off-load pool; -EAGAIN if there is none.
template <class Call>
long away(Call call) noexcept {
    const auto uninterrupted = [&call]() noexcept {
        long n;
        do n = call();
        while (n == -EINTR);
        return n;
    };
    if (!sched::this_parkable().is_fiber) return uninterrupted();
    try {
        return offload(uninterrupted);
    } catch (...) {
        return -EAGAIN;
    }
}

// The number of bytes in all pieces.
inline std::size_t total(const iovec* v, int count) noexcept {
    std::size_t sum = 0;
    for (int i = 0; i < count; ++i) sum += v[i].iov_len;
    return sum;
}

// Offset -1 means the file's own.
long file_read(int fd, const iovec* into, int count, off_t offset) noexcept;
long file_write(int fd, const iovec* from, int count, off_t offset) noexcept;

}  // namespace ums::io
