// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/interrupt.hpp: Ctrl-C while peers run.
//
// The signals that end a program are blocked except while waiting for a peer, so that none is lost
// between two waits, and the peer can always be killed before the command exits.

#include <csignal>

namespace tool {

// Thrown by the wait that noticed the signal; by then the peer is dead. The exit code is 128 +
// signal.
struct interrupted {
    int signal;
};

// Call once, before the first peer.
void catch_interrupts();

// Catches them as long as it exists.
class caught_interrupts {
public:
    caught_interrupts() { catch_interrupts(); }
    ~caught_interrupts();
    caught_interrupts(const caught_interrupts&) = delete;
    caught_interrupts& operator=(const caught_interrupts&) = delete;
};

// The mask to wait with, which is also the one a peer must start with.
const sigset_t& interruptible_mask();

// The signal that arrived, or 0.
int interrupt_signal();

// The signal that another process has sent (kill(2)) since the last call, or 0. A signal from the
// terminal reaches the peers, too.
int take_sent_interrupt();

}  // namespace tool
