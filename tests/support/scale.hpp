// SPDX-License-Identifier: MIT
#pragma once

// support/scale.hpp: a sanitizer makes everything ten times slower and a fiber a hundred times larger.

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

// How many: in an ordinary build, and under a sanitizer.
constexpr int scaled(int ordinary, int sanitized) noexcept {
    return under_tsan || under_asan ? sanitized : ordinary;
}
