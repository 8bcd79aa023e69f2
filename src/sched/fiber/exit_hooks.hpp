// SPDX-License-Identifier: MIT
#pragma once

// sched/fiber/exit_hooks.hpp: what belongs to a fiber, or to a plain kernel thread, until it ends.
//
// Cost: nothing until something is registered; at a fiber's end two loads of one cache line and a
// branch.

#include <cstdint>

#include "ums/impl/at_exit.hpp"

namespace ums::impl {
struct local_table;
}

namespace ums::sched {

// Only its fiber or thread touches it. All of it is zero when that begins.
struct belongings {
    impl::exit_hook* first_stage = nullptr;
    impl::exit_hook* last_stage = nullptr;
    impl::local_table* locals = nullptr;  // Of ums::fiber_local.
    std::uint32_t keeps = 0;  // Scopes in which it keeps its carrier (sched/block/keep.hpp).

    // Whether there is nothing to do at the end.
    [[nodiscard]] bool is_empty() const noexcept {
        return (reinterpret_cast<std::uintptr_t>(first_stage) |
                reinterpret_cast<std::uintptr_t>(last_stage) | keeps) == 0;
    }
};

// The belongings of the caller.
[[nodiscard]] belongings& this_belongings() noexcept;

// Runs hooks until there are none. Called by the fiber or thread that they belong to.
void run_hooks(belongings& of) noexcept;

}  // namespace ums::sched
