// SPDX-License-Identifier: MIT
#pragma once

// rt/version.hpp: the version of the library.

namespace ums::rt {

inline constexpr char version_text[] = "0.1.0";

}  // namespace ums::rt
