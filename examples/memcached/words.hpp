// SPDX-License-Identifier: MIT
#pragma once

// words: splits a command line into words, and reads numbers as memcached does.

#include <array>
#include <cstdint>
#include <string_view>

namespace memcached {

// The first words of a line, and what follows them. Only the space separates words; a NUL ends the
// line.
class words {
public:
    static constexpr unsigned most = 23;

    explicit words(std::string_view line) noexcept;

    [[nodiscard]] unsigned count() const noexcept { return count_; }
    std::string_view operator[](unsigned i) const noexcept { return words_[i]; }
    // What follows the last of the words; empty unless there are more than `most`.
    [[nodiscard]] std::string_view rest() const noexcept { return rest_; }

    // Takes the first word off `line`; empty at its end.
    static std::string_view next(std::string_view& line) noexcept;

private:
    std::array<std::string_view, most> words_;
    unsigned count_ = 0;
    std::string_view rest_;
};

// Each returns false for what is no number, or too large. They accept what strtoul() and its family
// accept: leading blanks, a sign, any number of zeros in front, and anything after a blank.
bool parse(std::string_view word, std::uint32_t& number) noexcept;  // These two keep
bool parse(std::string_view word, std::int32_t& number) noexcept;   // the low 32 bits.
bool parse(std::string_view word, std::uint64_t& number) noexcept;

// Base64 with padding. decode() returns the bytes written to `out`, 0 if `in` is not valid or too
// long. Like memcached's, it skips other characters and ends at the padding.
std::size_t base64_decode(std::string_view in, char* out, std::size_t capacity) noexcept;
std::size_t base64_encode(std::string_view in, char* out) noexcept;

}  // namespace memcached
