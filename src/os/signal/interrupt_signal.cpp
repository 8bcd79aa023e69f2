// SPDX-License-Identifier: MIT
#include "os/signal/interrupt_signal.hpp"

#include <cerrno>
#include <mutex>
#include <pthread.h>
#include <system_error>
#include <ucontext.h>
#include <unistd.h>

#include "base/assert.hpp"
#include "base/atomic.hpp"
#include "os/errno.hpp"
#include "os/signal/user_interrupt.hpp"
#include "os/stay_loaded.hpp"

namespace ums::os {

namespace {

// What is kept of each signal. Written before the handler is installed, and not while it is.
struct installed {
    struct sigaction before;
    interrupt_signal::handler on_interrupt;
    base::atomic<bool> exists;
    base::atomic<interrupt_signal::behind> behind;  // Takes the place of `before`, if not null.
    // The handler that lay above ours when ours was to go. It may pass signals on to ours, or put
    // ours back, so ours had to stay. Null if ours could go.
    void (*above)(int, siginfo_t*, void*);
};
constinit installed all[_NSIG] = {};

using action = void (*)(int, siginfo_t*, void*);

bool is_on_top(int number, action ours) noexcept {
    struct sigaction now {};
    return sigaction(number, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) != 0 &&
           now.sa_sigaction == ours;
}

// Returns 0, or -1 and errno.
int put_in(int number, action ours, int flags) noexcept {
    installed& mine = all[number];
    struct sigaction now {
    }, next{};
    // In two steps, because a foreign signal may come as soon as our handler is there, and must
    // find the former one.
    if (sigaction(number, nullptr, &now) != 0) return -1;
    // It is still there. A second place in the chain would make it a circle.
    if (mine.above != nullptr && (now.sa_sigaction == mine.above || now.sa_sigaction == ours))
        return 0;
    mine.before = now;
    next.sa_sigaction = ours;
    next.sa_flags = SA_SIGINFO | SA_RESTART | flags;
    next.sa_mask = held_back();
    sigdelset(&next.sa_mask, number);  // As the flags have it.
    return sigaction(number, &next, nullptr);
}

void take_out(int number, action ours) noexcept {
    installed& mine = all[number];
    mine.above = nullptr;
    struct sigaction now {};
    sigaction(number, nullptr, &now);
    if (now.sa_sigaction == ours) {
        struct sigaction next = mine.before;
        if (const auto behind = mine.behind.exchange(nullptr, base::relaxed); behind != nullptr) {
            next = {};
            next.sa_handler = behind;
            next.sa_flags = SA_RESTART;
        }
        sigaction(number, &next, nullptr);
    } else {
        if (now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN) mine.above = now.sa_sigaction;
        stay_loaded();
    }
}

// Does what would have happened without us.
void pass_on(int number, siginfo_t* info, void* context) noexcept {
    // relaxed: the handler is a constant.
    if (const auto behind = all[number].behind.load(base::relaxed); behind != nullptr)
        return behind(number);
    const struct sigaction& before = all[number].before;
    if ((before.sa_flags & SA_SIGINFO) == 0 && before.sa_handler == SIG_IGN) return;
    if ((before.sa_flags & SA_SIGINFO) == 0 && before.sa_handler == SIG_DFL) {
        // The program dies the same death. The signal comes when this handler returns, which
        // unblocks it.
        sigaction(number, &before, nullptr);
        ::tgkill(::getpid(), ::gettid(), number);
        return;
    }
    // The mask with which the kernel would have called it.
    sigset_t outer, inner = static_cast<const ucontext_t*>(context)->uc_sigmask;
    sigorset(&inner, &inner, &before.sa_mask);
    if ((before.sa_flags & SA_NODEFER) == 0) sigaddset(&inner, number);
    pthread_sigmask(SIG_SETMASK, &inner, &outer);
    if ((before.sa_flags & SA_SIGINFO) != 0)
        before.sa_sigaction(number, info, context);
    else
        before.sa_handler(number);
    pthread_sigmask(SIG_SETMASK, &outer, nullptr);
}

void handle(int number, siginfo_t* info, void* context) noexcept {
    int* const at = &errno;
    const int kept = read_errno(at);
    if (user_interrupt::take(*info))
        all[number].on_interrupt(*info, context);
    else
        pass_on(number, info, context);
    write_errno(at, kept);
}

void handle_overflow(int number, siginfo_t* info, void* context) noexcept {
    int* const at = &errno;
    const int kept = read_errno(at);
    const bool is_ours = info->si_code == SI_KERNEL && user_interrupt::try_lost_again();
    // A signal that looks like ours may come from a descriptor of the program's, so its handler, if
    // there is one, sees it too.
    const struct sigaction& before = all[number].before;
    const bool is_handled =
        (before.sa_flags & SA_SIGINFO) != 0 || before.sa_handler != SIG_DFL ||
        all[number].behind.load(base::relaxed) != nullptr;  // relaxed: as above.
    if (!is_ours || is_handled) pass_on(number, info, context);
    write_errno(at, kept);
}

std::mutex overflow_lock;
unsigned overflow_users = 0;  // Guarded by overflow_lock.

}  // namespace

sigset_t held_back() noexcept {
    sigset_t all_but;
    sigfillset(&all_but);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS})
        sigdelset(&all_but, fault);
    return all_but;
}

overflow_signal::overflow_signal() noexcept {
    const std::lock_guard hold{overflow_lock};
    if (overflow_users++ != 0) return;
    // This cannot fail, because the number is valid.
    static_cast<void>(put_in(SIGIO, &handle_overflow, SA_ONSTACK));
}

overflow_signal::~overflow_signal() {
    const std::lock_guard hold{overflow_lock};
    UMS_ASSERT(overflow_users != 0, "more ends than beginnings");
    if (--overflow_users != 0) return;
    take_out(SIGIO, &handle_overflow);
}

bool interrupt_signal::put_behind(int number, behind handler, struct sigaction* before) noexcept {
    struct sigaction now {};
    if (sigaction(number, nullptr, &now) != 0 || (now.sa_flags & SA_SIGINFO) == 0 ||
        (now.sa_sigaction != &handle && now.sa_sigaction != &handle_overflow))
        return false;
    if (before != nullptr) *before = all[number].before;
    all[number].behind.store(handler, base::relaxed);
    return true;
}

int interrupt_signal::unused() noexcept {
    const auto is_free = [](int n) {
        struct sigaction now {};
        return sigaction(n, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 &&
               now.sa_handler == SIG_DFL;
    };
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    for (int n = SIGRTMAX - 1; n >= SIGRTMIN; --n)
        if (sigismember(&blocked, n) == 0 && is_free(n)) return n;
    if (is_free(SIGSTKFLT)) return SIGSTKFLT;
    for (int n = SIGRTMAX - 1; n >= SIGRTMIN; --n)
        if (is_free(n)) return n;
    return 0;
}

bool interrupt_signal::is_usable(int signal) noexcept {
    return signal >= SIGRTMIN && signal <= SIGRTMAX;
}

interrupt_signal::interrupt_signal(int signal, handler on_interrupt, int flags) : number_{signal} {
    if (!is_usable(signal) && signal != SIGSTKFLT)
        throw std::system_error{std::make_error_code(std::errc::invalid_argument),
                                "ums: the signal of user interrupts: expected a real-time signal"};
    // sync(interrupt.signal): one at a time; sees what the last user left.
    installed& mine = all[signal];
    UMS_ASSERT(!mine.exists.exchange(true, base::acq_rel), "two handlers of user interrupts");
    mine.on_interrupt = on_interrupt;
    if (put_in(signal, &handle, flags) != 0) {
        mine.exists.store(false, base::release);  // sync(interrupt.signal)
        throw std::system_error{errno, std::generic_category(), "ums: sigaction"};
    }
}

interrupt_signal::~interrupt_signal() {
    take_out(number_, &handle);
    all[number_].exists.store(false, base::release);  // sync(interrupt.signal)
}

bool interrupt_signal::is_installed() const noexcept { return is_on_top(number_, &handle); }

}  // namespace ums::os
