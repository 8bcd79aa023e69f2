// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/bench/cell.hpp: one runtime at one setting: what to run, the results, and the row they
// make.

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "spread.hpp"

namespace tool {

using json = nlohmann::ordered_json;

struct cell {
    std::string runtime;             // "boost.fiber"
    std::string program;             // "yield-boost_fiber"
    std::vector<std::string> args;   // "fibers=10"
    json settings = json::object();  // As the row shows them; always has processors.
    std::uint64_t processors = 1;
    bool is_beside_loop = false;  // Another program loops on the same CPUs meanwhile.

    // Several ways to do the same, of which the fastest is kept: the arguments of each
    // ("stack=pooled").
    std::vector<std::vector<std::string>> variants;
    // If not 0, the yields of each fiber; fewer if the cell would take longer than the budget.
    std::uint64_t yields = 0;
    double budget_s = 0;
    // Appended to the arguments in the short runs that choose the variant and the yields.
    std::vector<std::string> probe_args;
    // Appended in the first repetition only: for figures that take long and hardly vary.
    std::vector<std::string> first_args;

    // Another cell that runs exactly the same, because both run fewer yields than they were to. It
    // is measured for both.
    const cell* same_as = nullptr;

    // The results. Every figure has as many samples as there were repetitions, or one.
    std::map<std::string, std::vector<double>> samples;
    std::string error;

    // How long one repetition took, including everything around the measurement, or 0.
    double seconds = 0;

    // How many repetitions have succeeded.
    std::size_t runs() const {
        std::size_t most = 0;
        for (const auto& [name, values] : samples) most = std::max(most, values.size());
        return most;
    }
    std::optional<spread> figure(const std::string& name) const;
    // 0 if there is no such setting.
    std::uint64_t fibers() const { return settings.value("fibers", std::uint64_t{0}); }
    // "1000 fibers, 100 yields", for the progress line.
    std::string label() const;
    // The settings, then either each figure with its _min and _max, or the error.
    json row() const;
};

// All runtimes at one setting. Each repetition measures them one after the other.
using setting = std::vector<cell>;

}  // namespace tool
