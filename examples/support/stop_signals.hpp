// SPDX-License-Identifier: MIT
#pragma once

// stop_signals: SIGINT and SIGTERM as a call on a thread of its own, rather than a handler that may do nothing.
//
// Made in main() before any other thread: it blocks the two signals, and threads inherit that.

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

    // Calls f() when the first of them comes; once.
    void call(std::function<void()> f) {
        waiter_ = std::thread{[this, f = std::move(f)] {
            int signal = 0;
            sigwait(&set_, &signal);
            if (!ended_) f();
        }};
    }
    // No call any more. Waits for one that has begun.
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
