// SPDX-License-Identifier: MIT
#pragma once

// rt/version.hpp: the version of the library. CMakeLists.txt has it; cmake/library.cmake hands it to the files that
// include this.

namespace ums::rt {

inline constexpr char version_text[] = UMS_VERSION;

}  // namespace ums::rt
