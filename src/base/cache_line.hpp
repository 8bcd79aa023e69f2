// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

namespace ums::base {

// The unit that two processors must not share. It is a constant of the ABI, not of the machine: the
// compiler's std::hardware_destructive_interference_size may change with -mtune.
inline constexpr std::size_t cache_line = 64;

}  // namespace ums::base
