// SPDX-License-Identifier: MIT
#pragma once

// carry/service_thread.hpp: a kernel thread of the runtime that handles none of the application's
// signals.

#include <csignal>
#include <pthread.h>
#include <thread>
#include <utility>

#include "os/thread/at_rest.hpp"

namespace ums::carry {

// `name` has at most 15 characters. Throws std::system_error.
template <class F>
std::thread service_thread(const char* name, F body) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // The new thread inherits it.
    struct restored {
        const sigset_t& mask;
        ~restored() { pthread_sigmask(SIG_SETMASK, &mask, nullptr); }
    } restore{before};
    return std::thread{[name, run = std::move(body)] {
        pthread_setname_np(pthread_self(), name);
        const os::at_rest counted;
        run();
    }};
}

}  // namespace ums::carry
