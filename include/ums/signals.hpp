// SPDX-License-Identifier: MIT
#pragma once

// ums/signals.hpp: signals of the process as events that a fiber waits for.
//
//   ums::signal_events quit{SIGINT, SIGTERM};
//   ums::fiber{[&] { quit.wait().value(); door.close(); }}.detach();
//
// While it exists the signals have a handler that only notes them; what they did before is put back
// by the destructor. Several objects for one signal nest, as a stack; the last one made gets it. Several fibers may wait
// for one object: each signal is returned once.
//
// Blocking: wait() parks the fiber.
// Ordering: signals of one number that come before a wait() count as one, as in the kernel.
// Errors:   the constructor throws std::system_error: invalid_argument (a number that is none, SIGKILL, SIGSTOP).
// Cost:     one eventfd for each object.

#include <atomic>
#include <csignal>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "ums/export.hpp"
#include "ums/limits.hpp"
#include "ums/result.hpp"

namespace ums {

class UMS_EXPORT signal_events {
public:
    signal_events(std::initializer_list<int> numbers)
        : signal_events{std::span<const int>{numbers.begin(), numbers.size()}} {}
    explicit signal_events(std::span<const int> numbers);
    ~signal_events();
    signal_events(const signal_events&) = delete;
    signal_events& operator=(const signal_events&) = delete;

    // The number of one that came; the lowest first.
    result<int> wait(const limits& l = {});

private:
    struct taken {
        int number;
        struct sigaction before;
        signal_events* owner_before;
    };
    static void note(int number) noexcept;
    void put_back() noexcept;

    std::vector<taken> taken_;
    std::atomic<std::uint64_t> came_ = 0;  // Bit n - 1: number n, and no wait() has returned it.
    int fd_ = -1;
};

}  // namespace ums
