// SPDX-License-Identifier: MIT
#pragma once

// io/away/file.hpp: calls that block on a disk, made away from the carrier.

#include <cerrno>
#include <exception>
#include <sys/types.h>
#include <sys/uio.h>

#include "io/away/offload.hpp"
#include "io/wait/descriptor.hpp"
#include "os/io_calls.hpp"
#include "sched/run/park.hpp"

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
    struct {
        decltype(uninterrupted)* call;
        long result;
    } c{&uninterrupted, 0};
    try {
        const auto run = [](void* argument) {
            auto& made = *static_cast<decltype(c)*>(argument);
            made.result = (*made.call)();
        };
        offload_pool::call(call_kind::ours, run, &c);
    } catch (const std::exception&) {
        return -EAGAIN;
    }
    return c.result;
}

// Makes calls on a number away from the carrier; -EBADF if the number was closed before the thread
// of the pool could make them, by libums or elsewhere. `only_call`: see descriptor::hold.
template <class Call>
long away_on(const number_at& n, long only_call, Call call) noexcept {
    if (n.d == nullptr) return descriptor::why_none(n.fd);
    const std::uint64_t file = descriptor::file_of(n.fd);
    return away([=]() noexcept -> long {
        const descriptor::hold held{*n.d, n.generation, only_call};
        return held && descriptor::file_of(n.fd) == file ? call() : -EBADF;
    });
}

// The number of bytes in all pieces.
inline std::size_t total(const iovec* v, int count) noexcept {
    std::size_t sum = 0;
    for (int i = 0; i < count; ++i) sum += v[i].iov_len;
    return sum;
}

// Offset -1 means the file's own.
long file_read(const number_at& n, const iovec* into, int count, off_t offset) noexcept;
long file_write(const number_at& n, const iovec* from, int count, off_t offset) noexcept;

}  // namespace ums::io
