// SPDX-License-Identifier: MIT
#include "words.hpp"

#include <cctype>
#include <charconv>
#include <system_error>

namespace memcached {

std::string_view words::next(std::string_view& line) noexcept {
    std::size_t begin = 0;
    while (begin < line.size() && line[begin] == ' ') ++begin;
    std::size_t end = begin;
    while (end < line.size() && line[end] != ' ') ++end;
    const std::string_view word = line.substr(begin, end - begin);
    line.remove_prefix(end);
    return word;
}

words::words(std::string_view line) noexcept {
    line = line.substr(0, line.find('\0'));
    while (count_ < most) {
        const std::string_view word = next(line);
        if (word.empty()) return;
        words_[count_++] = word;
    }
    rest_ = line;
}

namespace {

bool is_blank(char c) noexcept { return std::isspace(static_cast<unsigned char>(c)) != 0; }

// Reads blanks, a sign, digits; then the end, or a blank and anything. Returns false if it is no
// number, or one above 2^64 - 1.
bool scan(std::string_view word, bool& is_negative, std::uint64_t& magnitude) noexcept {
    const char* at = word.data();
    const char* const last = at + word.size();
    while (at != last && is_blank(*at)) ++at;
    is_negative = at != last && *at == '-';
    if (at != last && (*at == '-' || *at == '+')) ++at;
    const auto [end, error] = std::from_chars(at, last, magnitude);
    return error == std::errc{} && (end == last || *end == '\0' || is_blank(*end));
}

// The common case: a few digits.
bool parse_short(std::string_view word, std::uint32_t& number) noexcept {
    if (word.empty() || word.size() > 9) return false;
    std::uint32_t value = 0;
    for (const char c : word) {
        if (c < '0' || c > '9') return false;
        value = value * 10 + static_cast<std::uint32_t>(c - '0');
    }
    number = value;
    return true;
}

}  // namespace

bool parse(std::string_view word, std::uint64_t& number) noexcept {
    if (std::uint32_t small = 0; parse_short(word, small)) {
        number = small;
        return true;
    }
    bool is_negative = false;
    std::uint64_t magnitude = 0;
    if (!scan(word, is_negative, magnitude)) return false;
    number = is_negative ? 0 - magnitude : magnitude;
    // As with memcached, a sign counts only in front of or behind what would be negative as a
    // signed number.
    return static_cast<std::int64_t>(number) >= 0 ||
           word.substr(0, word.find('\0')).find('-') == std::string_view::npos;
}

bool parse(std::string_view word, std::uint32_t& number) noexcept {
    std::uint64_t wide = 0;
    if (!parse(word, wide)) return false;
    number = static_cast<std::uint32_t>(wide);
    return true;
}

bool parse(std::string_view word, std::int32_t& number) noexcept {
    if (std::uint32_t small = 0; parse_short(word, small)) {
        number = static_cast<std::int32_t>(small);
        return true;
    }
    bool is_negative = false;
    std::uint64_t magnitude = 0;
    if (!scan(word, is_negative, magnitude)) return false;
    constexpr std::uint64_t most = INT64_MAX;
    if (magnitude > most + (is_negative ? 1 : 0)) return false;
    // As with memcached, only the low 32 bits count.
    number = static_cast<std::int32_t>(is_negative ? 0 - magnitude : magnitude);
    return true;
}

namespace {

constexpr char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int digit(char c) noexcept {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

}  // namespace

std::size_t base64_decode(std::string_view in, char* out, std::size_t capacity) noexcept {
    std::size_t digits = 0, written = 0;
    for (const char c : in) digits += digit(c) >= 0 || c == '=';
    if (digits == 0 || digits % 4 != 0 || digits / 4 * 3 > capacity) return 0;
    unsigned bits = 0, have = 0, pad = 0;
    for (const char c : in) {
        if (digit(c) < 0 && c != '=') continue;
        pad += c == '=';
        bits = bits << 6 | (c == '=' ? 0u : static_cast<unsigned>(digit(c)));
        if (++have % 4 != 0) continue;
        for (unsigned k = 0; k < 3; ++k) out[written++] = static_cast<char>(bits >> (16 - 8 * k));
        if (pad > 2) return 0;
        if (pad != 0) return written - pad;
    }
    return written;
}

std::size_t base64_encode(std::string_view in, char* out) noexcept {
    std::size_t written = 0;
    for (std::size_t i = 0; i < in.size(); i += 3) {
        const std::size_t have = in.size() - i < 3 ? in.size() - i : 3;
        unsigned bits = 0;
        for (std::size_t k = 0; k < 3; ++k)
            bits = bits << 8 | (k < have ? static_cast<unsigned char>(in[i + k]) : 0u);
        for (std::size_t k = 0; k < 4; ++k)
            out[written++] = k <= have ? alphabet[bits >> (18 - 6 * k) & 63] : '=';
    }
    return written;
}

}  // namespace memcached
