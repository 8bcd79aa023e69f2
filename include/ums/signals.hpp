// SPDX-License-Identifier: MIT
#pragma once

// ums/signals.hpp: signals of the process as events that a fiber waits for.
//
//   ums::signal_events quit{SIGINT, SIGTERM};
//   ums::fiber{[&] { quit.wait().value(); door.close(); }}.detach();
//
// While the object exists, its signals have a handler that only notes them. The destructor restores
// what they did before. Several objects for one signal nest like a stack; the latest gets the
// signal.
//
// Blocking: wait() parks the fiber; a plain kernel thread blocks.
// Fairness: several fibers may wait for one object. Each signal is returned once; which fiber gets
//           it is not specified.
// Ordering: signals of one number that come before a wait() count as one, as in the kernel.
// Lifetime: destroy the objects of one signal in the reverse order of their making, and while no
//           fiber waits for them.
// Errors:   the constructor throws std::system_error: invalid_argument (not a signal number,
//           SIGKILL or SIGSTOP), or the error of eventfd().
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
    // Takes over the signals of these numbers.
    signal_events(std::initializer_list<int> numbers)
        : signal_events{std::span<const int>{numbers.begin(), numbers.size()}} {}
    explicit signal_events(std::span<const int> numbers);
    ~signal_events();
    signal_events(const signal_events&) = delete;
    signal_events& operator=(const signal_events&) = delete;

    // Waits for a signal and returns its number; of several, the lowest.
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
    // Bit n - 1: signal n came, and no wait() has returned it.
    std::atomic<std::uint64_t> came_ = 0;
    int fd_ = -1;
};

}  // namespace ums
