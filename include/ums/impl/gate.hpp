// SPDX-License-Identifier: MIT
#pragma once

// ums/impl/gate.hpp: a count, and the waiters for its zero. latch, wait_group and
// manual_reset_event are made of it.
//
// Their headers state the contract. src/sync/gate.cpp implements these functions.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stop_token>

#include "ums/deadline.hpp"
#include "ums/export.hpp"
#include "ums/impl/misuse.hpp"
#include "ums/impl/wait_list.hpp"

namespace ums::impl {

// The count and a flag; see src/sync/gate.cpp.
struct gate_state {
    std::uintptr_t word = 0;
    wait_list waiters;

    static constexpr std::ptrdiff_t most = (std::numeric_limits<std::ptrdiff_t>::max)();

    constexpr explicit gate_state(std::ptrdiff_t count) noexcept {
        if (count < 0) misuse("a count that is negative at its start");
        word = static_cast<std::uintptr_t>(count) * 2;
    }
};

struct gate_calls {
    // Adds `n`, which may be negative.
    UMS_EXPORT static void add(gate_state& g, std::ptrdiff_t n) noexcept;
    // Requires: n >= 0.
    UMS_EXPORT static void count_down(gate_state& g, std::ptrdiff_t n) noexcept;
    UMS_EXPORT static void open(gate_state& g) noexcept;   // Sets the count to zero.
    UMS_EXPORT static void close(gate_state& g) noexcept;  // Sets the count to one.

    UMS_EXPORT static bool is_open(const gate_state& g) noexcept;
    UMS_EXPORT static void wait(gate_state& g) noexcept;
    UMS_EXPORT static bool wait_until(gate_state& g, deadline limit);
    UMS_EXPORT static bool wait_or_stop(gate_state& g, const std::stop_token& stop,
                                        deadline limit = (deadline::max)());
};

// The waits that latch, wait_group and manual_reset_event share: until the count is zero.
class gate {
public:
    gate(const gate&) = delete;
    gate& operator=(const gate&) = delete;

    // Whether the count is zero. Does not wait.
    [[nodiscard]] bool try_wait() const noexcept { return gate_calls::is_open(state_); }
    // Waits until the count is zero.
    void wait() const { gate_calls::wait(state_); }

    // False once the time has passed. If the count reaches zero at the same moment, the zero wins.
    template <class Rep, class Period>
    [[nodiscard]] bool wait_for(const std::chrono::duration<Rep, Period>& d) const {
        return gate_calls::wait_until(state_, deadline_after(d));
    }
    template <class Clock, class Duration>
    [[nodiscard]] bool wait_until(const std::chrono::time_point<Clock, Duration>& t) const {
        return until(t, [this](deadline limit) { return gate_calls::wait_until(state_, limit); });
    }

    // False once a stop is requested. If the count reaches zero at the same moment, the zero wins.
    [[nodiscard]] bool wait(const std::stop_token& stop) const {
        return gate_calls::wait_or_stop(state_, stop);
    }

protected:
    constexpr explicit gate(std::ptrdiff_t count) noexcept : state_{count} {}
    ~gate() = default;

    using calls = gate_calls;
    mutable gate_state state_;
};

}  // namespace ums::impl
