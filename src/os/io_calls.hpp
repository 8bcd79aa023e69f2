// SPDX-License-Identifier: MIT
#pragma once

// os/io_calls.hpp: the system calls of I/O, by number.
//
// One function makes them all, so that tests can put a failing or a counting one in its place. It
// bypasses the C library's wrappers, which are cancellation points and write errno. Under a
// sanitizer, which sees only those wrappers, it goes through them. The result is a value, or
// -errno.

#include <cerrno>
#include <cstddef>
#include <ctime>
#include <poll.h>
#include <sys/syscall.h>
#include <type_traits>

namespace ums::os {

struct io_calls {
    long (*call)(long number, long a, long b, long c, long d, long e, long f) noexcept;
};

extern const io_calls kernel_io;

// The function in use. Replace it only while nothing uses it.
extern io_calls io_system;

namespace impl {
template <class T>
long to_word(T value) noexcept {
    if constexpr (std::is_pointer_v<T>)
        return reinterpret_cast<long>(value);
    else if constexpr (std::is_null_pointer_v<T>)
        return 0;
    else
        return static_cast<long>(value);
}
}  // namespace impl

template <class A = long, class B = long, class C = long, class D = long, class E = long,
          class F = long>
long io_call(long number, A a = {}, B b = {}, C c = {}, D d = {}, E e = {}, F f = {}) noexcept {
    using impl::to_word;
    return io_system.call(number, to_word(a), to_word(b), to_word(c), to_word(d), to_word(e),
                          to_word(f));
}

// Whether the kernel makes no such call: it is too old, or a filter (seccomp) refuses it.
constexpr bool is_refused(long error) noexcept {
    return error == -EPERM || error == -EACCES || error == -ENOSYS;
}

// ppoll(2), or poll(2) where a filter refuses that. Null means without limit.
long poll_call(pollfd* fds, std::size_t count, const timespec* limit) noexcept;

}  // namespace ums::os
