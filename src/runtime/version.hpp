// SPDX-License-Identifier: MIT
#pragma once

// runtime/version.hpp: the version of the library. It is written in CMakeLists.txt;
// cmake/library.cmake passes it to the files that include this.

namespace ums::rt {

inline constexpr char version_text[] = UMS_VERSION;

}  // namespace ums::rt
