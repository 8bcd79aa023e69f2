// SPDX-License-Identifier: MIT
#include "detectors.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "../usage.hpp"

namespace tool {

namespace {

constexpr std::array known{"off", "monitor"};

std::string detector_of(const cell& one) { return one.settings.value("detector", ""); }

// The settings except what a detector may change.
json rest_of(const cell& one) {
    json rest = one.settings;
    for (const auto* key : {"detector", "variant", "yields_run", "repetitions"}) rest.erase(key);
    return rest;
}

}  // namespace

std::vector<std::string> detector_list(std::string_view text) {
    std::vector<std::string> all;
    for (const auto& one : word_list("--detectors", text)) {
        if (std::find(known.begin(), known.end(), one) == known.end())
            throw usage_error{fmt::format("--detectors: expected some of: {}, got '{}'",
                                          fmt::join(known, ", "), one)};
        if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(one);
    }
    return all;
}

void split_by_detector(result& got) {
    if (got.options.detectors.empty()) return;
    const auto& detectors = got.options.detectors;
    std::vector<setting> plan;
    for (auto& group : got.plan) {
        setting others;
        std::vector<setting> split(detectors.size());
        for (auto& one : group) {
            if (one.runtime != "ums") {
                others.push_back(std::move(one));
                continue;
            }
            for (std::size_t i = 0; i < detectors.size(); ++i) {
                auto with = one;
                with.settings["detector"] = detectors[i];
                with.args.push_back("detector=" + detectors[i]);
                split[i].push_back(std::move(with));
            }
        }
        plan.push_back(std::move(others));
        std::move(split.begin(), split.end(), std::back_inserter(plan));
    }
    got.plan = std::move(plan);
}

std::vector<std::string> detector_ratios(const result& got, const std::string& figure) {
    std::vector<std::string> lines;
    if (got.options.detectors.size() < 2) return lines;
    const auto& first = got.options.detectors.front();
    const auto each = [&](auto use) {
        for (const auto& group : got.plan)
            for (const auto& one : group) use(one);
    };
    for (const auto& other : got.options.detectors) {
        if (other == first) continue;
        std::string line;
        each([&](const cell& a) {
            if (detector_of(a) != other) return;
            const json settings = rest_of(a);
            each([&](const cell& b) {
                if (detector_of(b) != first || settings != rest_of(b)) return;
                const auto ours = a.figure(figure), theirs = b.figure(figure);
                if (!ours || !theirs || theirs->median == 0 || theirs->lowest == 0) return;
                std::string what;
                for (const auto& [key, value] : settings.items())
                    what +=
                        fmt::format("{}{} {}", what.empty() ? "" : ", ", key,
                                    value.is_string() ? value.get<std::string>() : value.dump());
                line += fmt::format("   {:.3f}, lowest {:.3f} ({})", ours->median / theirs->median,
                                    ours->lowest / theirs->lowest, what);
            });
        });
        if (!line.empty()) lines.push_back(fmt::format("with {} / with {}{}", other, first, line));
    }
    return lines;
}

}  // namespace tool
