// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/bench/options.hpp: the options of `ums bench`, checked.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tool {

struct bench_options {
    std::vector<std::uint64_t> processors{1};
    bool has_processors = false;        // Whether the user has chosen them.
    std::vector<std::uint64_t> fibers;  // If empty, the workload's own; the same for the next two.
    std::vector<std::uint64_t> yields;
    std::vector<std::uint64_t> connections;
    std::vector<std::uint64_t> pipeline;
    std::vector<std::uint64_t> rates;
    std::vector<std::string> runtimes;
    std::vector<std::string> ways;
    std::vector<std::string> detectors;  // Empty: whatever the environment says.
    std::string client;
    std::optional<unsigned> repetitions;
    bool quick = false;
    bool cycles = false;
    bool demo = false;  // Measure only the part that `ums bench demo` shows.
};

// Parses the text of an option as numbers; returns them sorted, each once. Throws usage_error that
// names the option.
std::vector<std::uint64_t> number_list(std::string_view option, std::string_view text,
                                       std::uint64_t lowest, std::uint64_t highest,
                                       std::string_view why_highest = "");

// Splits the text of an option at its commas. Throws usage_error if there is nothing between two.
std::vector<std::string> word_list(std::string_view option, std::string_view text);

}  // namespace tool
