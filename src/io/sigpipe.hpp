// SPDX-License-Identifier: MIT
#pragma once

// io/sigpipe.hpp: keeps the kernel from raising SIGPIPE in calls that have no MSG_NOSIGNAL.
//
// The kernel sends the signal to the thread that writes. So that thread blocks it around the call,
// and takes it away if the call has raised it. The fiber does not switch meanwhile. A call that
// wrote a part before the last reader closed raises the signal, too, and returns the size of that
// part.

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <ctime>
#include <pthread.h>

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

}  // namespace ums::io
