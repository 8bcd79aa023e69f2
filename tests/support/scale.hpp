// SPDX-License-Identifier: MIT
#pragma once

// support/scale.hpp: a sanitizer makes everything ten times slower and a fiber a hundred times
// larger.

#include <cstdio>
#include <cstdlib>

#include "support/debug_words.hpp"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UMS_TEST_TSAN 1
#endif
#if __has_feature(address_sanitizer)
#define UMS_TEST_ASAN 1
#endif
#endif

#if defined(UMS_TEST_TSAN)
inline constexpr bool under_tsan = true;
#else
inline constexpr bool under_tsan = false;
#endif
#if defined(UMS_TEST_ASAN)
inline constexpr bool under_asan = true;
#else
inline constexpr bool under_asan = false;
#endif

// There a signal does not stop fibers: docs/hand-off.md.
inline constexpr bool never_stops = under_tsan || under_asan;

// The number for an ordinary build, or that for a sanitizer.
constexpr int scaled(int ordinary, int sanitized) noexcept {
    return under_tsan || under_asan ? sanitized : ordinary;
}

// The same, unless the environment asks for a long form: TEST_ROUNDS=1000000.
inline int sized(const char* variable, int ordinary, int sanitized) noexcept {
    const char* const wanted = std::getenv(variable);
    if (wanted == nullptr) return scaled(ordinary, sanitized);
    char* end = nullptr;
    const long n = std::strtol(wanted, &end, 10);
    if (n > 0 && n <= 1'000'000'000 && *end == '\0') return static_cast<int>(n);
    std::fprintf(stderr, "%s=%s: expected a number from 1 to 1000000000\n", variable, wanted);
    std::exit(2);
}

// Whether each park and yield moves the fiber to another processor. Where fibers take turns, this
// costs a wake-up of a kernel thread each time, and, if there are more of these than CPUs, often a
// whole time slice.
inline bool is_scattered() noexcept { return has_debug_word("migrate"); }
