// SPDX-License-Identifier: MIT
#include "interrupt.hpp"

#include <initializer_list>

namespace tool {

namespace {

volatile std::sig_atomic_t arrived = 0;
sigset_t original_mask;

void remember(int signal) { arrived = signal; }

}  // namespace

void catch_interrupts() {
    sigset_t blocked;
    sigemptyset(&blocked);
    struct sigaction action {};
    action.sa_handler = remember;
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        struct sigaction before {};
        sigaction(signal, nullptr, &before);
        if (before.sa_handler == SIG_IGN) continue;  // As under nohup.
        sigaddset(&blocked, signal);
        sigaction(signal, &action, nullptr);
    }
    sigprocmask(SIG_BLOCK, &blocked, &original_mask);
}

const sigset_t& interruptible_mask() { return original_mask; }

int interrupt_signal() { return arrived; }

}  // namespace tool
