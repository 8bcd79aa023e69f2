// SPDX-License-Identifier: MIT
#include "windows/suspension.hpp"

#include <cerrno>
#include <csignal>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/futex.hpp"
#include "windows/guard.hpp"

namespace ums::windows {
namespace {

thread_local constinit suspension* self = nullptr;

void on_signal(int) {
    const int kept = errno;
    if (!uninterrupted::defer()) obey_suspension();
    errno = kept;
}

// The highest real-time signal without a handler; 0 if there is none.
int take_signal() noexcept {
    for (int number = SIGRTMAX - 1; number > SIGRTMIN; --number) {
        struct sigaction now {};
        if (::sigaction(number, nullptr, &now) != 0 || (now.sa_flags & SA_SIGINFO) != 0 ||
            now.sa_handler != SIG_DFL)
            continue;
        struct sigaction mine {};
        mine.sa_handler = on_signal;
#if !defined(UMS_TSAN)  // Under ThreadSanitizer the wait must return: see obey_late_signals().
        mine.sa_flags = SA_RESTART;
#endif
        sigemptyset(&mine.sa_mask);
        if (::sigaction(number, &mine, nullptr) == 0) return number;
    }
    return 0;
}

}  // namespace

void set_suspension(suspension* own) noexcept { self = own; }

void obey_suspension() noexcept {
    suspension* const own = self;
    if (own == nullptr) return;
    for (;;) {
        // sync(windows.suspend): sees what was decided before the signal was sent.
        if (own->is_condemned.load(compat::acquire) != 0) {
            ::syscall(SYS_set_tid_address, &own->is_there);
            ::syscall(SYS_exit, 0);
        }
        const std::uint32_t count = own->count.load(compat::acquire);
        if (count == 0) break;
        // sync(windows.suspend): the thread that suspended it sees what it did before.
        own->is_stopped.store(1, compat::release);
        compat::futex_wake(&own->is_stopped, 64);
        compat::futex_wait(&own->count, count);
    }
    // relaxed: a late reader of 1 is right too, because the signal it sent stops the thread before
    // its next step.
    own->is_stopped.store(0, compat::relaxed);
}

bool interrupt(pthread_t thread) noexcept {
    static const int number = take_signal();
    if (number == 0) return false;
    const int error = ::pthread_kill(thread, number);
    // ESRCH: the thread is not there, so it has seen by itself that it is to leave.
    return error == 0 || error == ESRCH;
}

void wait_until_stopped(suspension& of) noexcept {
    // sync(windows.suspend): as above. The thread may have been resumed meanwhile, or be about to
    // end.
    while (of.is_stopped.load(compat::acquire) == 0 && of.count.load(compat::acquire) != 0)
        compat::futex_wait(&of.is_stopped, 0);
}

void wait_until_gone(suspension& of) noexcept {
    // sync(windows.suspend): sees what the thread did.
    while (of.is_there.load(compat::acquire) != 0)
        ::syscall(SYS_futex, &of.is_there, FUTEX_WAIT, 1, nullptr, nullptr, 0);
}

void let_go(suspension& of) noexcept {
    // Not a private futex, because the kernel's own wake-up is not private either.
    ::syscall(SYS_futex, &of.is_there, FUTEX_WAKE, 64, nullptr, nullptr, 0);
    compat::futex_wake(&of.count, 64);
    compat::futex_wake(&of.is_stopped, 64);
}

}  // namespace ums::windows
