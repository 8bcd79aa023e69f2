// SPDX-License-Identifier: MIT
#pragma once

// bench/lone/threads.hpp: what kernel threads and workers of the UMS API have in common: the system
// calls and the locks of the C library.

#include <semaphore.h>

#include <condition_variable>
#include <ctime>
#include <latch>
#include <mutex>

#include "lone.hpp"

namespace lone {

template <class Runtime>
struct plain_calls : descriptor_calls {
    using latch = std::latch;
    using mutex = std::mutex;
    using condition = std::condition_variable;
    using stream = descriptor_stream<Runtime>;

    class signal {
    public:
        signal() { sem_init(&sent_, 0, 0); }
        signal(const signal&) = delete;
        signal& operator=(const signal&) = delete;
        ~signal() { sem_destroy(&sent_); }
        void send() { sem_post(&sent_); }
        void wait() {
            while (sem_wait(&sent_) != 0) {
            }
        }

    private:
        sem_t sent_;
    };

    class door {
    public:
        explicit door(const plan& how) : fd_{listen_for(how, 0)}, is_tcp_{how.way != "echo_unix"} {}
        stream accept() {
            const int made = checked(accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC), "accept4");
            if (is_tcp_) bench::send_at_once(made);
            return stream{made};
        }

    private:
        int fd_;
        bool is_tcp_;
    };

    static stream connect(std::uint16_t port) { return stream{plain_connect(port)}; }
    static void sleep_until_ns(std::uint64_t at) {
        const timespec limit{static_cast<time_t>(at / 1'000'000'000),
                             static_cast<long>(at % 1'000'000'000)};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &limit, nullptr) != 0) {
        }
    }
    static void choose(bench::cell&) {}
};

}  // namespace lone
