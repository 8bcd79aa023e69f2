// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/bench/view.hpp: how a result is shown: tables, for the terminal and the page, and
// charts, for the page.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cell.hpp"

namespace tool {

struct entry {
    std::string text;
    std::string spread;  // "47.9 to 52.0"; empty for labels and where all samples agree.
    bool is_error = false;
};

struct table {
    std::string title;
    std::vector<std::string> header;
    std::vector<std::vector<entry>> rows;
    std::size_t labels = 1;  // The leading columns that name a row.
    std::vector<std::string> notes;
};

struct point {
    double x;  // In a bar chart, the index of the label.
    spread y;
};

struct series {
    std::string runtime;  // Determines the colour, which is the same in all charts.
    std::vector<point> points;
};

struct chart {
    enum class kind { bars, lines };
    std::string title;
    std::string about;  // What it shows and how to read it, in two sentences; may be empty.
    kind drawn = kind::bars;
    std::string x_title;
    std::string y_title;
    bool log_y = false;
    std::vector<std::string> labels;  // The labels of the groups of bars.
    std::vector<series> all;

    nlohmann::ordered_json to_json() const;
};

// What a run shows: a sentence made of its figures, and a bar for each runtime.
struct claim {
    struct bar {
        std::string runtime;
        double value;
        std::string text;  // "9.8 ns"
    };
    std::string says;   // For the head of the page and the terminal's summary.
    std::string about;  // What was measured, and how to read the bars.
    std::vector<bar> bars;
};

struct view {
    std::vector<table> tables;
    std::vector<chart> charts;
    std::vector<claim> claims;
};

// 4.62, 48.3, 512, 21,345: three digits, and thousands separated.
std::string human(double value);
std::string human(std::uint64_t value);
// 4.3 KiB, 1.2 GiB.
std::string human_bytes(double bytes);

using format = std::string (*)(double);

// The figure of a cell, "failed", or a dash; with a star if the cell ran fewer yields than its
// setting says.
entry entry_of(const cell& one, const std::string& figure, format how = human);
entry entry_of(const std::optional<spread>& figure, format how = human);

std::string text_of(const table& shown);
// The sentence, and under it the bars' figures.
std::string text_of(const claim& shown);

}  // namespace tool
