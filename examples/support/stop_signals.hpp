// SPDX-License-Identifier: MIT
#pragma once

// stop_signals: turns SIGINT and SIGTERM into a call on a thread of its own, rather than in a
// handler, where almost nothing is allowed.
//
// Make it in main() before any other thread: it blocks the two signals, and threads inherit that.

#include <csignal>
#include <pthread.h>

#include <atomic>
#include <functional>
#include <thread>

class stop_signals {
public:
    stop_signals() {
        sigemptyset(&set_);
        sigaddset(&set_, SIGINT);
        sigaddset(&set_, SIGTERM);
        pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    }
    stop_signals(const stop_signals&) = delete;
    stop_signals& operator=(const stop_signals&) = delete;
    ~stop_signals() { end(); }

    // Calls f() once, when the first of them comes.
    void call(std::function<void()> f) {
        waiter_ = std::thread{[this, f = std::move(f)] {
            int signal = 0;
            sigwait(&set_, &signal);
            if (!ended_) f();
        }};
    }
    // Calls nothing any more. Waits for a call that has begun.
    void end() {
        if (!waiter_.joinable()) return;
        ended_ = true;
        pthread_kill(waiter_.native_handle(), SIGTERM);
        waiter_.join();
    }

private:
    sigset_t set_;
    std::atomic<bool> ended_ = false;
    std::thread waiter_;
};
