// SPDX-License-Identifier: MIT
#include <algorithm>
#include <map>

#include "profile_data.hpp"

namespace tool::profiling {

namespace {

// Semicolons, line ends and the last space have a meaning in this format.
std::string plain(std::string name) {
    std::replace(name.begin(), name.end(), ';', ':');
    // Names are fit for a terminal by now: they have no end of a line.
    return name;
}

}  // namespace

std::string to_folded(const profile_data& p) {
    std::map<std::string, std::int64_t> lines;
    for (const sample& s : p.samples) {
        std::string line = s.is_on_cpu ? "[on CPU]" : "[off CPU]";
        for (const frame& f : s.frames) line += ";" + plain(f.function);
        lines[line] += s.ns;
    }
    std::string text;
    for (const auto& [line, ns] : lines) text += line + " " + std::to_string(ns / 1000) + "\n";
    return text;
}

}  // namespace tool::profiling
