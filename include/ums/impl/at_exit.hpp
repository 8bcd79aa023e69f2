// SPDX-License-Identifier: MIT
#pragma once

// ums/impl/at_exit.hpp: what a fiber, or a plain kernel thread, does last.
//
// A hook runs on the fiber itself when its function has returned and its arguments are destroyed,
// before join() returns; it may block. On a plain thread it runs among the destructors of the
// thread_local objects, the main thread's included.
//
// Order: all hooks of the first stage, the last registered first, until none is left; then one of
// the last
//        stage, also the last registered first; and so on until there is none. So a hook may
//        register others.
// Lifetime: the hook is the caller's, untouched once run() has been called on it, which may free
// it.

#include "ums/export.hpp"

namespace ums::impl {

// first: destructors of what belongs to the fiber. last: telling others that all of it is gone.
enum class exit_stage : unsigned char { first, last };

struct exit_hook {
    exit_hook* next = nullptr;
    void (*run)(exit_hook& self) noexcept = nullptr;
};

// Registers `hook` with the caller. Requires: it is registered nowhere.
UMS_EXPORT void at_fiber_exit(exit_hook& hook, exit_stage stage = exit_stage::first) noexcept;

}  // namespace ums::impl
