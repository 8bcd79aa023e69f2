// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/bench/page/assets.hpp: the files of the report page, which assets.S puts into the
// command.

#include <string_view>

namespace tool::assets {

std::string_view page();
std::string_view style();
std::string_view script();
std::string_view chart_library();

}  // namespace tool::assets
