// SPDX-License-Identifier: MIT
#pragma once

// arch/exception_state.hpp: the C++ runtime's per-thread exception globals.
//
// __cxa_get_globals() gives each kernel thread a chain of caught exceptions and a count of uncaught
// ones. A fiber that leaves its carrier inside a catch block, or inside a destructor that runs
// during unwinding, must take them along, and find them on the carrier where it continues. Outside
// such places both are zero, so a switch only tests them. The Itanium C++ ABI, 2.2.2, fixes the
// layout.

namespace ums::arch {

struct exception_state {
    void* caught = nullptr;
    unsigned int uncaught = 0;

    // relaxed: they are the thread's own; as atomics they are no race for ThreadSanitizer between
    // fibers that share the thread in turn.
    [[nodiscard]] bool active() const noexcept {
        return __atomic_load_n(&caught, __ATOMIC_RELAXED) != nullptr ||
               __atomic_load_n(&uncaught, __ATOMIC_RELAXED) != 0;
    }
    // Puts the state aside, and puts it back.
    [[nodiscard]] exception_state take() noexcept {
        return {__atomic_exchange_n(&caught, nullptr, __ATOMIC_RELAXED),
                __atomic_exchange_n(&uncaught, 0u, __ATOMIC_RELAXED)};
    }
    void put(exception_state kept) noexcept {
        __atomic_store_n(&caught, kept.caught, __ATOMIC_RELAXED);
        __atomic_store_n(&uncaught, kept.uncaught, __ATOMIC_RELAXED);
    }
};

// The calling kernel thread's state. The address is constant for the thread's life.
exception_state* exception_state_of_thread() noexcept;

}  // namespace ums::arch
