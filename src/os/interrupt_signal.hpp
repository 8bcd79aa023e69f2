// SPDX-License-Identifier: MIT
#pragma once

// os/interrupt_signal.hpp: the signal that user interrupts come by, and its handler.
//
// The number may be the application's, too: what does not come from a user_interrupt goes to the
// handler that was there before, with its mask; if there was none, the default happens.
//
// While one exists SIGIO is handled, too. The kernel sends it to a thread instead of our signal if that finds no room under
// RLIMIT_SIGPENDING, and by default it ends the program. A handler that the program has for it is still called; a SIGIO that
// cannot be ours does what it did before.
//
// Replacing it later is the application's right. Then is_installed() is false, and a handler of its own that
// knows nothing of ours gets our signals.

#include <csignal>

namespace ums::os {

// Takes SIGIO while one exists.
class overflow_signal {
public:
    overflow_signal() noexcept;
    ~overflow_signal();
    overflow_signal(const overflow_signal&) = delete;
    overflow_signal& operator=(const overflow_signal&) = delete;
};

class interrupt_signal {
public:
    // Called for a signal of a user_interrupt, on the thread that was stopped; `context`: ucontext_t.
    using handler = void (*)(const siginfo_t& signal, void* context) noexcept;

    // A real-time signal that nobody handles or ignores; 0 if there is none. The highest: programs take
    // theirs from SIGRTMIN on. Not SIGRTMAX, which Valgrind keeps for itself.
    [[nodiscard]] static int unused() noexcept;

    // Whether the number can be used: a real-time signal.
    [[nodiscard]] static bool is_usable(int signal) noexcept;

    // `flags`: SA_ONSTACK, SA_NODEFER. System calls that a stray signal of another sender interrupts are
    // restarted. Throws std::system_error. One at a time for each signal.
    interrupt_signal(int signal, handler on_interrupt, int flags = 0);
    // Puts the former handler back, unless the application has replaced ours: then that stays, and
    // our signals must not come any more.
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
