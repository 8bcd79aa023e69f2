// SPDX-License-Identifier: MIT
#pragma once

// base/check.hpp: ends the program with one line of text after misuse that leaves no way to
// continue. UMS_DEBUG_CHECK() does so after a mistake of ours, in debug builds.

#include <cstdio>
#include <cstdlib>

namespace ums::compat {

inline void check(bool is_right, const char* message) noexcept {
    if (is_right) [[likely]]
        return;
    std::fprintf(stderr, "ums: %s\n", message);
    std::abort();
}

}  // namespace ums::compat

#if defined(UMS_DEBUG)
#define UMS_DEBUG_CHECK(is_right, message) ::ums::compat::check(is_right, message)
#else
#define UMS_DEBUG_CHECK(is_right, message) ((void)0)
#endif
