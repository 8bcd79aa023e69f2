// SPDX-License-Identifier: MIT
#pragma once

// windows/utf8.hpp: wide text is UTF-32 here, narrow text UTF-8.

#include <string>
#include <string_view>

namespace ums::windows {

inline std::string to_utf8(std::wstring_view text) {
    std::string made;
    for (const wchar_t wide : text) {
        const auto c = static_cast<unsigned>(wide);
        const int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
        constexpr unsigned heads[] = {0, 0xC0, 0xE0, 0xF0};
        made += static_cast<char>(heads[more] | c >> 6 * more);
        for (int k = more - 1; k >= 0; --k) made += static_cast<char>(0x80 | (c >> 6 * k & 0x3F));
    }
    return made;
}

}  // namespace ums::windows
