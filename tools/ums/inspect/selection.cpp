// SPDX-License-Identifier: MIT
#include "selection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <sstream>
#include <utility>

#include "../usage.hpp"

namespace tool::inspect {

namespace {

template <class Kind>
std::set<std::string> words(const std::string& list, const char* option, Kind last) {
    std::set<std::string> known, asked;
    for (unsigned i = 0; i <= static_cast<unsigned>(last); ++i)
        known.insert(name_of(static_cast<Kind>(i)));
    known.erase("");
    std::istringstream in{list};
    for (std::string word; std::getline(in, word, ',');) {
        if (!known.contains(word)) {
            std::string all;
            for (const std::string& one : known) all += (all.empty() ? "" : ", ") + one;
            throw usage_error{fmt::format("{}: '{}' is none of {}", option, word, all)};
        }
        asked.insert(word);
    }
    return asked;
}

}  // namespace

selection::selection(const std::string& states, const std::string& waits,
                     const std::string& cluster, const std::string& match)
    : states_{words(states, "--state", fiber_state::ended)},
      waits_{words(waits, "--waits", wait::page_fault)},
      cluster_{cluster} {
    try {
        if (!match.empty()) match_.emplace(match);
    } catch (const std::regex_error& e) {
        throw usage_error{
            fmt::format("--match: '{}' is no regular expression: {}", match, e.what())};
    }
}

bool selection::has(const fiber_record& f, const std::string& cluster,
                    const std::function<std::string()>& start) const {
    if (!states_.empty() && !states_.contains(name_of(f.state))) return false;
    if (!waits_.empty() && !waits_.contains(name_of(f.waits))) return false;
    if (!cluster_.empty() && cluster_ != cluster) return false;
    return !match_ || std::regex_search(f.name, *match_) || std::regex_search(start(), *match_);
}

void sort_fibers(const std::string& key, const snapshot& s, std::vector<std::uint32_t>& chosen,
                 const std::function<std::string(const fiber_record&)>& start) {
    assert(std::all_of(chosen.begin(), chosen.end(),
                       [&](std::uint32_t i) { return i < s.fibers.size(); }) &&
           "a fiber was chosen that is not in the picture");
    const auto by = [&](auto of) {
        std::sort(chosen.begin(), chosen.end(), [&](std::uint32_t a, std::uint32_t b) {
            const fiber_record &x = s.fibers[a], &y = s.fibers[b];
            return std::pair{of(x), x.id} < std::pair{of(y), y.id};
        });
    };
    by([](const fiber_record& f) { return f.id; });
    if (key == "id") return;
    if (key == "name") return by([](const fiber_record& f) { return f.name; });
    if (key == "state") return by([](const fiber_record& f) { return f.state; });
    if (key == "stack") return by([](const fiber_record& f) { return ~f.stack_used; });
    // The longest first, and last those of which nothing is known.
    if (key == "since") return by([](const fiber_record& f) { return -f.since_ns; });
    if (key == "cpu") return by([](const fiber_record& f) { return -f.cpu_ns; });
    if (key == "deadline")
        return by([](const fiber_record& f) { return f.deadline != 0 ? f.deadline : INT64_MAX; });
    if (key == "start") return by([&](const fiber_record& f) { return start(f); });
    throw usage_error{fmt::format(
        "--sort: '{}' is none of id, name, state, stack, since, cpu, deadline, start", key)};
}

}  // namespace tool::inspect
