// SPDX-License-Identifier: MIT
#pragma once

// ums/impl/at_exit.hpp: hooks that run at the end of a fiber, or of a plain kernel thread.
//
// A hook runs on the fiber itself when its function has returned and its arguments are destroyed,
// before join() returns; it may block. On a plain thread it runs among the destructors of the
// thread_local objects, also on the main thread.
//
// Ordering: all hooks of the first stage run, the last registered first, until none is left. Then
//           one hook of the last stage runs, also the last registered first; and so on until there
//           is none. So a hook may register others.
// Lifetime: the hook belongs to the caller. Nothing touches it once run() has been called on it,
//           and run() may free it.

#include "ums/export.hpp"

namespace ums::impl {

// first: destroys what belongs to the fiber. last: tells others that all of it is gone.
enum class exit_stage : unsigned char { first, last };

struct exit_hook {
    exit_hook* next = nullptr;
    void (*run)(exit_hook& self) noexcept = nullptr;
};

// Registers `hook` with the caller. Requires: the hook is not registered anywhere.
UMS_EXPORT void at_fiber_exit(exit_hook& hook, exit_stage stage = exit_stage::first) noexcept;

}  // namespace ums::impl
