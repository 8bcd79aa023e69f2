// SPDX-License-Identifier: MIT
#pragma once

// base/assert.hpp: assertions that stay on in release.
//
// UMS_ASSERT is for cheap core invariants and certain misuse: it prints one line that names what
// was broken and by which fiber, then aborts. UMS_DEBUG_ASSERT is for checks that cost too much in
// release builds.

namespace ums::base {

// Prints "ums: MESSAGE (FILE:LINE), in fiber ..." and aborts. The message names the invariant in
// words, so the source's text would say less.
[[noreturn]] void assertion_failed(const char* message, const char* file, int line) noexcept;

// The path within the project, without that of whoever compiled it.
consteval const char* within_project(const char* path) {
    const char* from = path;
    for (const char* p = path; *p != 0; ++p) {
        if (p != path && p[-1] != '/') continue;
        constexpr const char* folders[] = {"src/", "include/"};
        for (const char* const folder : folders) {
            const char *a = p, *b = folder;
            while (*b != 0 && *a == *b) ++a, ++b;
            if (*b == 0) from = p;
        }
    }
    return from;
}

// Prints "ums: MESSAGE" and aborts. For operating errors that leave no way to continue.
[[noreturn]] void fatal(const char* format, ...) noexcept __attribute__((format(printf, 1, 2)));

// Writes which fiber or thread is running into a buffer, for messages. The scheduler sets it; null
// before.
using describe_caller_fn = void (*)(char* buffer, unsigned long size) noexcept;
extern describe_caller_fn describe_caller;

}  // namespace ums::base

#define UMS_ASSERT(expression, message)                                                  \
    (__builtin_expect(!!(expression), 1)                                                 \
         ? (void)0                                                                       \
         : ::ums::base::assertion_failed(message, ::ums::base::within_project(__FILE__), \
                                         __LINE__))

#if defined(UMS_DEBUG)
#define UMS_DEBUG_ASSERT(expression, message) UMS_ASSERT(expression, message)
#else
#define UMS_DEBUG_ASSERT(expression, message) ((void)0)
#endif
