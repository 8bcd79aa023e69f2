// SPDX-License-Identifier: MIT
#pragma once

// workers/scheduler/landing.hpp: a place on a stack where control arrives again and again, at the
// same depth.
//
// land() calls arrive(argument). A switch to `at` discards what lies below on that stack, without
// unwinding, and arrive() is called anew. When arrive() returns, so does land(). As after
// longjmp(), the frame of land() must still exist, and it must have kept nothing in memory that it
// reads after the switch: it finds all it needs through the arrival.
//
// Sanitizers learn of the discarded frames by a longjmp() that goes nowhere: ThreadSanitizer takes
// them off its shadow of the call stack, and AddressSanitizer forgets what it had poisoned in them.

#include <csetjmp>

#include "arch/context.hpp"
#include "arch/sanitizer.hpp"

namespace ums::scheduling {

struct landing {
    arch::context at{}, discarded{};
    void (*arrive)(void* argument) = nullptr;
    void* argument = nullptr;
#if defined(UMS_ASAN) || defined(UMS_TSAN)
    jmp_buf frames;
#endif
};

// Not noexcept: pthread_exit() may unwind through it.
[[gnu::noinline]] void land(landing& l);

// Discards the caller's frames. Requires: the caller runs below land() on its stack.
[[noreturn]] void land_again(landing& l) noexcept;

}  // namespace ums::scheduling
