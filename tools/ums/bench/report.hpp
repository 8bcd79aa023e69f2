// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/bench/report.hpp: the results as JSON that other programs can compare, and as a page.

#include <string>
#include <vector>

#include "../machine.hpp"
#include "workload.hpp"

namespace tool {

// {"bench", "machine", "rows"}.
json to_json(const result& got, const machine& on);

struct section {
    std::string name;
    std::string about;
    view shown;
};

// The first claim of each section: the run in a few sentences, or nothing.
std::string verdict(const std::vector<section>& sections);

// One page that needs no network: style, script and Chart.js are in it. It begins with the verdict
// and a chart for each claim; the tables and all charts are folded below.
std::string to_html(const std::vector<section>& sections, const machine& on,
                    const std::string& command_line);

}  // namespace tool
