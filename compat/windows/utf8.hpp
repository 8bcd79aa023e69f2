// SPDX-License-Identifier: MIT
#pragma once

// windows/utf8.hpp: wide text is UTF-32 here, narrow text UTF-8; what is neither becomes U+FFFD.

#include <string>
#include <string_view>

namespace ums::windows {

std::string to_utf8(std::wstring_view text);
std::wstring to_wide(std::string_view text);

}  // namespace ums::windows
