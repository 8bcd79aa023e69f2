// SPDX-License-Identifier: MIT
#pragma once

// os/signal/interrupt_signal.hpp: the signal that user interrupts use, and its handler.
//
// The application may use the same number: a signal that does not come from a user_interrupt goes
// to the handler that was there before, with its mask; if there was none, the default happens.
//
// While an object exists, SIGIO is handled, too. The kernel sends SIGIO to a thread in place of our
// signal if that finds no room under RLIMIT_SIGPENDING, and by default SIGIO ends the program. A
// handler that the program has for SIGIO is still called; a SIGIO that cannot be ours does what it
// did before.
//
// While our handler runs, which may be for as long as a fiber is stopped, the thread holds back
// the program's signals. A handler of the program's that ran then could leave by siglongjmp(), as
// that of a timer may which limits a computation: the fiber would run without its turn, and whoever
// gives it its turn would wait for ever. The mask is the kernel thread's, and so is the frame that
// the handler returns through: the fiber finds the mask as it was.
//
// The application may replace our handler later. Then is_installed() is false, and a handler of the
// application's that knows nothing of ours gets our signals.

#include <csignal>

namespace ums::os {

// Handles SIGIO while an object exists.
class overflow_signal {
public:
    overflow_signal() noexcept;
    ~overflow_signal();
    overflow_signal(const overflow_signal&) = delete;
    overflow_signal& operator=(const overflow_signal&) = delete;
};

// The signals of the program that a stopped thread holds back: all but those that are the fault of
// the code that runs, and those of the C library.
[[nodiscard]] sigset_t held_back() noexcept;

class interrupt_signal {
public:
    // Called for a signal of a user_interrupt, on the thread that was stopped; `context` is a
    // ucontext_t.
    using handler = void (*)(const siginfo_t& signal, void* context) noexcept;

    // A signal that the program has no use for; 0 if there is none. It is the highest real-time
    // signal, because programs take theirs from SIGRTMIN on, that is neither handled nor ignored;
    // but not SIGRTMAX, which Valgrind keeps for itself. One that the calling thread blocks may be
    // taken by sigwait() somewhere, and would come to our threads instead. If all are blocked it is
    // SIGSTKFLT, which Linux never sends.
    [[nodiscard]] static int unused() noexcept;

    // Whether the program may choose the number: a real-time signal.
    [[nodiscard]] static bool is_usable(int signal) noexcept;

    // Gives the signals of other senders to `handler`, as if it had been there before: in our place
    // it would get our signals. If `handler` is null, they go to what was there before: `before`.
    // Returns false if ours is not installed for the number: then use sigaction(). Once ours goes,
    // `handler` is in its place. Not while an object is made or destroyed for the number.
    using behind = void (*)(int number);
    static bool put_behind(int number, behind handler, struct sigaction* before = nullptr) noexcept;

    // `flags` may have SA_ONSTACK and SA_NODEFER. System calls that a stray signal of another
    // sender interrupts are restarted. Throws std::system_error. Only one object at a time for each
    // signal.
    interrupt_signal(int signal, handler on_interrupt, int flags = 0);
    // Puts the former handler back, unless the application has replaced ours: then its handler
    // stays, and our signals must not come any more.
    ~interrupt_signal();
    interrupt_signal(const interrupt_signal&) = delete;
    interrupt_signal& operator=(const interrupt_signal&) = delete;

    [[nodiscard]] int number() const noexcept { return number_; }
    // False once the application has installed another handler.
    [[nodiscard]] bool is_installed() const noexcept;

private:
    const int number_;
    const overflow_signal overflow_;
};

}  // namespace ums::os
