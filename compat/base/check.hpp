// SPDX-License-Identifier: MIT
#pragma once

// base/check.hpp: ends the program with one line of text after misuse that leaves no way to
// continue.

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
