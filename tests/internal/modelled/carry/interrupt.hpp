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
    // What a model checks when a carrier's fiber is left behind, by the carrier's thread.
    using check = void (*)(int tid) noexcept;
    static inline constinit check on_coarse = nullptr;

    void arm(int, os::nanoseconds) noexcept {}
    static void arm_coarse(int tid, os::nanoseconds) noexcept {
        if (on_coarse != nullptr) on_coarse(tid);
    }
    [[nodiscard]] static bool has_precise() noexcept { return true; }
    [[nodiscard]] static bool is_open() noexcept { return true; }
    void again(os::nanoseconds) noexcept {}
    void disarm() noexcept {}
    void close() noexcept {}
    void leave_behind() noexcept {}
    [[nodiscard]] char* stack() noexcept { return nullptr; }
};

}  // namespace ums::carry
