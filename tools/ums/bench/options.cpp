// SPDX-License-Identifier: MIT
#include "options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <charconv>

#include "../usage.hpp"

namespace tool {

std::vector<std::string> word_list(std::string_view option, std::string_view text) {
    std::vector<std::string> words;
    for (;;) {
        const auto comma = text.find(',');
        const auto word = text.substr(0, comma);
        if (word.empty())
            throw usage_error{
                fmt::format("{}: expected values separated by commas, got an empty one", option)};
        words.emplace_back(word);
        if (comma == std::string_view::npos) return words;
        text.remove_prefix(comma + 1);
    }
}

std::vector<std::uint64_t> number_list(std::string_view option, std::string_view text,
                                       std::uint64_t lowest, std::uint64_t highest,
                                       std::string_view why_highest) {
    assert(lowest <= highest && "no number is allowed");
    std::vector<std::uint64_t> numbers;
    for (const auto& word : word_list(option, text)) {
        std::uint64_t number = 0;
        const char* const end = word.data() + word.size();
        const auto [stop, error] = std::from_chars(word.data(), end, number);
        if (error != std::errc{} || stop != end || number < lowest || number > highest)
            throw usage_error{fmt::format("{}: expected a number from {} to {}{}, got '{}'", option,
                                          lowest, highest, why_highest, word)};
        numbers.push_back(number);
    }
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    return numbers;
}

}  // namespace tool
