// SPDX-License-Identifier: MIT
#include "interrupt.hpp"

#include <initializer_list>

namespace tool {

namespace {

volatile std::sig_atomic_t arrived = 0;
volatile std::sig_atomic_t sent = 0;
sigset_t original_mask;

void remember(int signal, siginfo_t* info, void*) {
    arrived = signal;
    if (info->si_code <= 0) sent = signal;
}

}  // namespace

void catch_interrupts() {
    sigset_t blocked;
    sigemptyset(&blocked);
    struct sigaction action {};
    action.sa_sigaction = remember;
    action.sa_flags = SA_SIGINFO;
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        struct sigaction before {};
        sigaction(signal, nullptr, &before);
        if (before.sa_handler == SIG_IGN) continue;  // This is so under nohup.
        sigaddset(&blocked, signal);
        sigaction(signal, &action, nullptr);
    }
    sigprocmask(SIG_BLOCK, &blocked, &original_mask);
}

caught_interrupts::~caught_interrupts() {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        struct sigaction now {};
        sigaction(signal, nullptr, &now);
        if (now.sa_handler == SIG_IGN) continue;
        now.sa_handler = SIG_DFL;
        now.sa_flags = 0;
        sigaction(signal, &now, nullptr);
    }
    sigprocmask(SIG_SETMASK, &original_mask, nullptr);
}

const sigset_t& interruptible_mask() { return original_mask; }

int interrupt_signal() { return arrived; }

int take_sent_interrupt() {
    // No signal arrives between the two, because the signals are blocked.
    const int signal = sent;
    sent = 0;
    return signal;
}

}  // namespace tool
