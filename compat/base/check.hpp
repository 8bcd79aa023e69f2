// SPDX-License-Identifier: MIT
#pragma once

// base/check.hpp: misuse that leaves no way on ends the program with one line.

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
