// SPDX-License-Identifier: MIT
#pragma once

// support/debug_words.hpp: the words of UMS_DEBUG that a test runs with, from its variant or its
// caller.

#include <cstdlib>
#include <string>
#include <string_view>

// Whether the list has this word: "migrate", "membarrier=off".
inline bool has_debug_word(std::string_view word) {
    const char* const list = std::getenv("UMS_DEBUG");
    return list != nullptr &&
           ("," + std::string{list} + ",").find("," + std::string{word} + ",") != std::string::npos;
}

// The list with more words at its end, for a child: of two equal words the last counts.
inline std::string with_debug_words(const std::string& more) {
    const char* const list = std::getenv("UMS_DEBUG");
    return list == nullptr || *list == '\0' ? more : std::string{list} + "," + more;
}
