// SPDX-License-Identifier: MIT
#include "words.hpp"

#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>

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

// Calls convert(text, &end) with a terminated copy of `word`; false if it is no number.
template <class Convert>
bool converted(std::string_view word, Convert convert) noexcept {
    char copy[64];
    if (word.size() >= sizeof copy) return false;  // More than any number needs.
    std::memcpy(copy, word.data(), word.size());
    copy[word.size()] = '\0';
    char* end = copy;
    errno = 0;
    const bool in_range = convert(copy, &end) && errno != ERANGE;
    const bool ends =
        std::isspace(static_cast<unsigned char>(*end)) != 0 || (*end == '\0' && end != copy);
    return in_range && ends;
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
    return converted(word, [&number](const char* text, char** end) {
        number = std::strtoull(text, end, 10);
        return static_cast<long long>(number) >= 0 || std::strchr(text, '-') == nullptr;
    });
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
    return converted(word, [&number](const char* text, char** end) {
        const long value = std::strtol(text, end, 10);
        number = static_cast<std::int32_t>(value);  // As memcached: the low 32 bits.
        return true;
    });
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
    if (in.empty() || in.size() % 4 != 0 || in.size() / 4 * 3 > capacity) return 0;
    std::size_t pad = 0;
    while (pad < 2 && in[in.size() - 1 - pad] == '=') ++pad;
    std::size_t written = 0;
    for (std::size_t i = 0; i < in.size(); i += 4) {
        unsigned bits = 0;
        const bool last = i + 4 == in.size();
        for (std::size_t k = 0; k < 4; ++k) {
            const bool padding = last && k >= 4 - pad;
            const int value = padding ? 0 : digit(in[i + k]);
            if (value < 0) return 0;
            bits = bits << 6 | static_cast<unsigned>(value);
        }
        for (std::size_t k = 0; k < 3 - (last ? pad : 0); ++k)
            out[written++] = static_cast<char>(bits >> (16 - 8 * k) & 0xff);
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
