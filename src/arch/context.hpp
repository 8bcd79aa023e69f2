// SPDX-License-Identifier: MIT
#pragma once

// arch/context.hpp: what is kept of a fiber while it does not run. The switch itself is in the file
// of each CPU.

#include <cstdint>

namespace ums::arch {

// How floating-point numbers are rounded, and so on.
struct control_words {
    std::uint32_t mxcsr;
    std::uint16_t x87;
};

// arch/*/switch.hpp knows the offsets.
struct context {
    void* sp;
    void* ip;  // Where to continue.
    void* bp;
    control_words controls;
};

// What a switch brings to the side that continues: its carrier from now on, and the action that the
// side that was left wants done now that its registers are saved (null: none).
struct arrival {
    void* carrier;
    void* after;
};

using entry_function = void (*)(void* carrier, void* after, void* argument);

extern "C" void ums_fiber_entry() noexcept;

}  // namespace ums::arch

#if defined(__x86_64__)
#include "arch/x86_64/switch.hpp"
#else
#error "libums has no context switch for this CPU yet"
#endif
