// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/usage.hpp: an argument that cannot be used. main() prints its one line and exits with
// 2.

#include <stdexcept>

namespace tool {

struct usage_error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

}  // namespace tool
