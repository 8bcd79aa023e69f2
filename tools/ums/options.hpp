// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/options.hpp: what `ums bench` was asked for, checked.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tool {

struct bench_options {
    std::vector<std::uint64_t> processors{1};
    std::vector<std::uint64_t> fibers;  // Empty: the workload's own, as for the next two.
    std::vector<std::uint64_t> yields;
    std::vector<std::uint64_t> connections;
    std::vector<std::uint64_t> pipeline;
    std::vector<std::string> runtimes;
    std::vector<std::string> detectors;  // Empty: whatever the environment says.
    std::string client;
    std::optional<unsigned> repetitions;
    bool quick = false;
    bool cycles = false;
    bool demo = false;  // The part of it that `ums bench demo` shows.
};

// The text of an option as numbers, sorted, each once. Throws usage_error that names the option.
std::vector<std::uint64_t> number_list(std::string_view option, std::string_view text,
                                       std::uint64_t lowest, std::uint64_t highest,
                                       std::string_view why_highest = "");

// The text of an option at its commas. Throws usage_error when there is nothing between two.
std::vector<std::string> word_list(std::string_view option, std::string_view text);

}  // namespace tool
