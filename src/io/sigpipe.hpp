// SPDX-License-Identifier: MIT
#pragma once

// io/sigpipe.hpp: keeps the kernel from raising SIGPIPE in calls that have no MSG_NOSIGNAL.
//
// Since Linux 6.18 pwritev2() has RWF_NOSIGNAL. Rejected: to block the signal on carriers for good,
// which saves the calls below on older kernels. The program would see another mask than it has set,
// and what it starts by fork(), system(), popen() or posix_spawn() would inherit it.
//
// Otherwise: the kernel sends the signal to the thread that writes. So that thread blocks it around
// the call, and takes it away if the call has raised it. The fiber does not switch meanwhile. A
// call that wrote a part before the last reader closed raises the signal, too, and returns the size
// of that part.

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <ctime>
#include <pthread.h>
#include <sys/uio.h>

#include "base/atomic.hpp"
#include "os/io_calls.hpp"

namespace ums::io {

// `wanted` is how many bytes the call asks for.
template <class Call>
long without_sigpipe(std::size_t wanted, Call& call) noexcept {
    sigset_t only, before, pending;
    sigemptyset(&only);
    sigaddset(&only, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &only, &before);
    const bool was_blocked = sigismember(&before, SIGPIPE) == 1;
    bool was_pending = false;
    if (was_blocked) was_pending = sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1;
    const long n = call();
    const bool is_part = n >= 0 && static_cast<std::size_t>(n) < wanted;
    if ((n == -EPIPE || is_part) && !was_pending) {
        const timespec zero{};
        sigtimedwait(&only, nullptr, &zero);
    }
    if (!was_blocked) pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return n;
}

inline constinit base::atomic<bool> kernel_has_nosignal{true};  // As far as is known.

// Writes with pwritev2()'s `flags`, and raises no SIGPIPE. `bytes` are in the pieces.
inline long write_without_sigpipe(int fd, const iovec* from, int count, std::size_t bytes,
                                  int flags, bool is_fifo) noexcept {
    constexpr int no_signal = 0x100;  // RWF_NOSIGNAL, which the C library may not know.
    // relaxed, here and below: a hint.
    const bool has = kernel_has_nosignal.load(base::relaxed);
    if (has) {
        const long n = os::io_call(SYS_pwritev2, fd, from, count, -1, 0, flags | no_signal);
        if (n != -EOPNOTSUPP && !os::is_refused(n)) [[likely]]
            return n;
    }
    auto call = [=]() noexcept {
        return flags != 0   ? os::io_call(SYS_pwritev2, fd, from, count, -1, 0, flags)
               : count == 1 ? os::io_call(SYS_write, fd, from->iov_base, from->iov_len)
                            : os::io_call(SYS_writev, fd, from, count);
    };
    const long n = without_sigpipe(bytes, call);
    // A file may refuse all flags. A pipe takes this one if the kernel has it, and so does a file
    // that took another.
    if (has && n != -EOPNOTSUPP && !os::is_refused(n) && (is_fifo || flags != 0))
        kernel_has_nosignal.store(false, base::relaxed);
    return n;
}

}  // namespace ums::io
