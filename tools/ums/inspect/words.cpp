// SPDX-License-Identifier: MIT
#include "words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <iterator>
#include <string_view>
#include <system_error>
#include <vector>

namespace tool::inspect {

namespace {

constexpr std::size_t most_known = 100'000;  // A program that lies may have any number.

}  // namespace

// Its pointer is the first word of what the fiber was given. A scope's child and a fiber with a
// value have a word of libums's there, then the function and its arguments in an order that is the
// standard library's: then it must be the only one that is a function of the program's.
address start_names::key(address run, address callable) {
    if (run == 0 || !known(run).is_pointer) return run;
    address words[8] = {};
    std::size_t n = std::size(words);
    try {
        while (n != 0 && !of_.read(callable, words, n * sizeof words[0])) n /= 2;
    } catch (const std::system_error&) {  // The process has ended.
        n = 0;
    }
    address found = run;
    for (std::size_t i = 0; i < n; ++i) {
        if (functions_.size() >= most_known) functions_.clear();
        const auto [at, is_new] = functions_.try_emplace(words[i]);
        if (is_new) at->second = from_.beginning_at(words[i]);
        if (at->second.empty() || at->second.starts_with("ums::")) continue;
        if (i == 0) return words[0];
        if (found != run && found != words[i]) return run;
        found = words[i];
    }
    return found;
}

const start& start_names::of(address key) { return known(key); }

const start_names::known_start& start_names::known(address key) {
    if (known_.size() >= most_known) known_.clear();
    const auto [at, is_new] = known_.try_emplace(key);
    known_start& s = at->second;
    if (!is_new || key == 0) return s;
    const std::string whole = from_.function(key);
    s.name = start_function(whole);
    // "void (*)(int)", "int ()"; the C API has a function of its own call the pointer.
    s.is_pointer = s.name.ends_with(')') || s.name.ends_with(") noexcept");
    if (s.name == whole) s.name.resize(std::min(s.name.size(), find_outside(s.name, '(')));
    s.shown = s.name;
    const bool is_lambda = s.name.ends_with('}') || s.name.find("::$_") != s.name.npos;
    if (!is_lambda) return s;
    const source_frame written = from_.lambda_of(key);
    if (written.file.empty()) return s;
    s.place = fmt::format("{}:{}", written.file, written.line);
    s.shown = s.place.substr(s.place.rfind('/') + 1);
    return s;
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

std::string in_words(const name_counts& all, bool with_numbers) {
    std::vector<std::pair<std::size_t, std::string>> sorted;
    for (const auto& [name, n] : all) sorted.emplace_back(n, name);
    std::sort(sorted.rbegin(), sorted.rend());
    std::string text;
    for (const auto& [n, name] : sorted)
        text += fmt::format("{}{}{}", text.empty() ? "" : ", ",
                            with_numbers ? fmt::format("{} ", n) : "", name);
    return text;
}

}  // namespace tool::inspect
