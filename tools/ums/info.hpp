// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/info.hpp: what the library is and what it chose on this machine.

#include <string>

namespace tool {

std::string version();
std::string info();

}  // namespace tool
