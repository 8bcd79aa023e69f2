// SPDX-License-Identifier: MIT
#include "words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <string_view>
#include <vector>

namespace tool::inspect {

const std::string& start_names::of(address run) {
    const auto [at, is_new] = known_.try_emplace(run);
    if (is_new) at->second = run != 0 ? start_function(from_.function(run)) : std::string{};
    return at->second;
}

const char* cluster_of(const snapshot& s, const fiber_record& f) {
    for (const cluster_record& c : s.clusters)
        if (c.at == f.cluster) return c.name.c_str();
    return "?";
}

std::string processor_of(const snapshot& s, const fiber_record& f) {
    assert((f.processor == nobody || f.processor < s.processors.size()) &&
           "a fiber is on a processor that was not read");
    return f.processor == nobody ? "-" : std::to_string(s.processors[f.processor].index);
}

std::string shortened(std::string name, std::size_t most) {
    constexpr std::string_view local = "(anonymous namespace)::";
    for (std::size_t at; (at = name.find(local)) != std::string::npos;)
        name.erase(at, local.size());
    if (name.size() > most) name = name.substr(0, most) + "..";
    return name;
}

std::string bytes_in_words(std::uint64_t n) {
    if (n == 0) return "-";
    if (n < 10'000) return std::to_string(n);
    if (n < 10'000'000) return fmt::format("{}K", n / 1024);
    if (n < 10'000'000'000) return fmt::format("{}M", n / 1024 / 1024);
    return fmt::format("{}G", n / 1024 / 1024 / 1024);
}

name_counts by_state(const snapshot& s) {
    std::map<fiber_state, std::size_t> counts;
    for (const fiber_record& f : s.fibers) ++counts[f.state];
    name_counts c;
    for (const auto& [state, n] : counts) c[name_of(state)] += n;
    return c;
}

name_counts by_wait(const snapshot& s) {
    std::map<wait, std::size_t> counts;
    for (const fiber_record& f : s.fibers)
        if (f.waits != wait::none) ++counts[f.waits];
    name_counts c;
    for (const auto& [kind, n] : counts) c[name_of(kind)] += n;
    return c;
}

std::string in_words(const name_counts& all) {
    std::vector<std::pair<std::size_t, std::string>> sorted;
    for (const auto& [name, n] : all) sorted.emplace_back(n, name);
    std::sort(sorted.rbegin(), sorted.rend());
    std::string text;
    for (const auto& [n, name] : sorted)
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", n, name);
    return text;
}

}  // namespace tool::inspect
