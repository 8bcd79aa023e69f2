// SPDX-License-Identifier: MIT
#include "windows/utf8.hpp"

#include <cstdint>

namespace ums::windows {
namespace {

constexpr std::uint32_t unknown = 0xFFFD;

constexpr bool is_character(std::uint32_t c) { return c < 0xD800 || (c > 0xDFFF && c <= 0x10FFFF); }

}  // namespace

std::string to_utf8(std::wstring_view text) {
    std::string made;
    for (const wchar_t wide : text) {
        auto c = static_cast<std::uint32_t>(wide);
        if (!is_character(c)) c = unknown;
        const auto put = [&](std::uint32_t byte) { made += static_cast<char>(byte); };
        if (c < 0x80) {
            put(c);
        } else if (c < 0x800) {
            put(0xC0 | c >> 6);
            put(0x80 | (c & 0x3F));
        } else if (c < 0x10000) {
            put(0xE0 | c >> 12);
            put(0x80 | (c >> 6 & 0x3F));
            put(0x80 | (c & 0x3F));
        } else {
            put(0xF0 | c >> 18);
            put(0x80 | (c >> 12 & 0x3F));
            put(0x80 | (c >> 6 & 0x3F));
            put(0x80 | (c & 0x3F));
        }
    }
    return made;
}

std::wstring to_wide(std::string_view text) {
    std::wstring made;
    for (std::size_t i = 0; i < text.size();) {
        const auto byte = [&](std::size_t at) {
            return at < text.size() ? static_cast<unsigned char>(text[at]) : 0u;
        };
        const std::uint32_t head = byte(i++);
        const int more = head < 0x80       ? 0
                         : head >> 5 == 6  ? 1
                         : head >> 4 == 14 ? 2
                         : head >> 3 == 30 ? 3
                                           : -1;
        static constexpr std::uint32_t least[] = {0, 0x80, 0x800, 0x10000};
        std::uint32_t c = more < 0 ? unknown : more == 0 ? head : head & (0x3Fu >> more);
        for (int k = 0; k < more; ++k) {
            if ((byte(i) & 0xC0) != 0x80) {
                c = unknown;
                break;
            }
            c = c << 6 | (byte(i++) & 0x3F);
        }
        if (!is_character(c) || (more > 0 && c < least[more])) c = unknown;
        made += static_cast<wchar_t>(c);
    }
    return made;
}

}  // namespace ums::windows
