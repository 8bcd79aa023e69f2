// SPDX-License-Identifier: MIT
#pragma once

// bench/common/cell.hpp: the key=value arguments of a peer.
//
// A peer runs one cell of a workload once: `yield-ums processors=1 fibers=10 yields=1000`. If a key
// is given twice, the later one counts, so that the driver can append what a probe changes. The
// peer must ask for every key before it calls done(); a key that it did not ask for is an error, so
// that a misspelt setting cannot silently measure something else.

#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

namespace bench {

class cell {
public:
    cell(int argc, char** argv) {
        for (int i = 1; i < argc; ++i) {
            const std::string_view word{argv[i]};
            const auto equals = word.find('=');
            if (equals == 0 || equals == std::string_view::npos)
                throw std::invalid_argument{"expected key=value, got '" + std::string{word} + "'"};
            given_[std::string{word.substr(0, equals)}] = {std::string{word.substr(equals + 1)},
                                                           false};
        }
    }

    std::uint64_t number(const std::string& key, std::uint64_t fallback, std::uint64_t lowest = 1,
                         std::uint64_t highest = 1'000'000'000) {
        const auto found = given_.find(key);
        if (found == given_.end()) return fallback;
        auto& [text, asked] = found->second;
        asked = true;
        std::uint64_t value = 0;
        const char* const end = text.data() + text.size();
        const auto [stop, error] = std::from_chars(text.data(), end, value);
        if (error != std::errc{} || stop != end || value < lowest || value > highest)
            throw std::invalid_argument{key + "=" + text + ": expected a number from " +
                                        std::to_string(lowest) + " to " + std::to_string(highest)};
        return value;
    }

    // Returns one of `words`, of which the first is the default.
    std::string word(const std::string& key, std::initializer_list<std::string_view> words) {
        const auto found = given_.find(key);
        if (found == given_.end()) return std::string{*words.begin()};
        auto& [text, asked] = found->second;
        asked = true;
        std::string known;
        for (const auto one : words) {
            if (text == one) return text;
            known += (known.empty() ? "" : ", ") + std::string{one};
        }
        throw std::invalid_argument{key + "=" + text + ": expected one of " + known};
    }

    void done() const {
        for (const auto& [key, given] : given_)
            if (!given.asked) throw std::invalid_argument{"unknown argument '" + key + "'"};
    }

private:
    struct argument {
        std::string text;
        bool asked;
    };
    std::map<std::string, argument> given_;
};

}  // namespace bench
