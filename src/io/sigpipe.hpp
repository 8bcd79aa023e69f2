// SPDX-License-Identifier: MIT
#pragma once

// io/sigpipe.hpp: keeps the kernel from raising SIGPIPE for calls that have no MSG_NOSIGNAL.
//
// The signal is sent to the thread that writes, so it is blocked for that thread around the call, and
// taken away if the call has raised it. The fiber does not switch meanwhile. A call that wrote a part before nobody read
// any more raises it, too, and returns how much that was.

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <ctime>
#include <pthread.h>

namespace ums::io {

// `wanted`: how many bytes the call asks for.
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

}  // namespace ums::io
