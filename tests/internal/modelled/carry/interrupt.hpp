// SPDX-License-Identifier: MIT
#pragma once

// For models, in place of carry/interrupt.hpp: the model interrupts at any time, regardless of what
// is armed.

#include <cstddef>

#include "os/clock.hpp"

namespace ums::carry {

class interrupt_source {};

class interrupt {
public:
    explicit interrupt(const interrupt_source&, std::size_t = 0) noexcept {}
    void arm(int, os::nanoseconds) noexcept {}
    [[nodiscard]] static bool is_open() noexcept { return true; }
    void again(os::nanoseconds) noexcept {}
    void disarm() noexcept {}
    void close() noexcept {}
    void leave_behind() noexcept {}
    [[nodiscard]] char* stack() noexcept { return nullptr; }
};

}  // namespace ums::carry
