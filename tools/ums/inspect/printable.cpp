// SPDX-License-Identifier: MIT
#include "printable.hpp"

#include <cassert>

#include <fmt/format.h>

namespace tool::inspect {

namespace {

// How many bytes the character at the beginning has; 0: it is no UTF-8, or would not be shown as
// itself.
std::size_t shown_bytes(std::string_view text) {
    const auto byte = [&](std::size_t i) {
        return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
    };
    const unsigned first = byte(0);
    if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
    const std::size_t n = first < 0xc2   ? 0
                          : first < 0xe0 ? 2
                          : first < 0xf0 ? 3
                          : first < 0xf5 ? 4
                                         : 0;
    if (n == 0) return 0;
    unsigned code = first & (0xffu >> (n + 1));
    for (std::size_t i = 1; i < n; ++i) {
        if ((byte(i) & 0xc0) != 0x80) return 0;
        code = code << 6 | (byte(i) & 0x3f);
    }
    const auto is_in = [code](unsigned from, unsigned to) { return from <= code && code <= to; };
    const bool is_control = code < 0xa0 || is_in(0x200e, 0x200f) || is_in(0x2028, 0x202e) ||
                            is_in(0x2066, 0x2069);  // The last three: lines and directions.
    const bool is_odd = (n == 3 && (code < 0x800 || is_in(0xd800, 0xdfff))) ||
                        (n == 4 && !is_in(0x10000, 0x10ffff));
    return is_control || is_odd ? 0 : n;
}

}  // namespace

std::string printable(std::string_view name) {
    std::string out;
    while (!name.empty()) {
        if (const std::size_t n = shown_bytes(name); n != 0) {
            assert(n <= name.size() && "a character ends behind its text");
            out += name.substr(0, n);
            name.remove_prefix(n);
        } else {
            out += fmt::format("\\x{:02x}", static_cast<unsigned char>(name[0]));
            name.remove_prefix(1);
        }
    }
    return out;
}

}  // namespace tool::inspect
