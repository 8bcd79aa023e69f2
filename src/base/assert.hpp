// SPDX-License-Identifier: MIT
#pragma once

// base/assert.hpp: assertions that stay on in release.
//
// UMS_ASSERT is for cheap core invariants and certain misuse: it prints one line that names what
// was broken and by which fiber, then aborts. UMS_DEBUG_ASSERT is for checks that cost too much in
// release builds.

namespace ums::base {

// Prints "ums: MESSAGE (EXPRESSION, FILE:LINE), in fiber ..." and aborts.
[[noreturn]] void assertion_failed(const char* message, const char* expression, const char* file,
                                   int line) noexcept;

// Prints "ums: MESSAGE" and aborts. For operating errors that leave no way to continue.
[[noreturn]] void fatal(const char* format, ...) noexcept __attribute__((format(printf, 1, 2)));

// Writes which fiber or thread is running into a buffer, for messages. The scheduler sets it; null
// before.
using describe_caller_fn = void (*)(char* buffer, unsigned long size) noexcept;
extern describe_caller_fn describe_caller;

}  // namespace ums::base

#define UMS_ASSERT(expression, message)  \
    (__builtin_expect(!!(expression), 1) \
         ? (void)0                       \
         : ::ums::base::assertion_failed(message, #expression, __FILE__, __LINE__))

#if defined(UMS_DEBUG)
#define UMS_DEBUG_ASSERT(expression, message) UMS_ASSERT(expression, message)
#else
#define UMS_DEBUG_ASSERT(expression, message) ((void)0)
#endif
