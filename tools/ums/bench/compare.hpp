// SPDX-License-Identifier: MIT
#pragma once

// tools/ums/bench/compare.hpp: the tables and charts that several workloads share.

#include <functional>
#include <string>
#include <vector>

#include "workload.hpp"

namespace tool {

// Selects settings of a result.
using filter = std::function<bool(const cell&)>;
filter everything();
filter where(std::string key, json value);

// A setting that names a row: its key and its title.
struct label {
    std::string key;
    std::string title;
};

struct figure {
    std::string key;
    std::string title;
    format how = human;
};

// One row for each setting, one column for each runtime. If the detector is a setting, it is a
// label by itself.
table by_runtime(const result& got, std::string title, std::vector<label> labels,
                 const std::string& figure, const filter& which);

// One row for each cell, one column for each figure that any of them has.
table by_figure(const result& got, std::string title, const std::vector<label>& labels,
                std::vector<figure> figures, const filter& which);

// One row for each runtime, and number of fibers if the user chose that, one column for each way:
// for many runtimes.
table by_way(const result& got, std::string title, const std::string& figure, const filter& which);

// The words for a figure that is lower than another, and for one that is higher.
struct comparison {
    const char* lower;
    const char* higher;
};
inline constexpr comparison of_times{"faster", "slower"};
inline constexpr comparison of_costs{"less", "more"};

// "160 times faster", "1.3 times slower"; "the same" where they differ by less than a twentieth.
// Requires: both are positive.
std::string compared(double ours, double theirs, comparison words);

// "160 times faster than a thread's", "as fast as a thread's".
std::string compared_with(double ours, double theirs, const std::string& name);

// "ums against boost.fiber   4.6 times faster": for each other runtime one line, with a ratio of
// medians for each value of the setting `key`; where several settings have that value, the median
// of their ratios.
std::vector<std::string> ratios(const result& got, const std::string& figure,
                                const std::string& key, const std::string& unit,
                                const filter& which, comparison words = of_times);

// The first setting with a cell that `which` selects; nullptr if there is none.
const setting* setting_of(const result& got, const filter& which);

// The median of a runtime's figure among those cells of a setting that `which` selects.
std::optional<double> median_of(const setting& group, const std::string& runtime,
                                const std::string& figure, const filter& which);

// A bar for each runtime of a setting that has the figure, those of libums first.
std::vector<claim::bar> bars_of(const setting& group, const std::string& figure,
                                const filter& which, format text);

// What a reader has to know about the rows: errors, the variants that were chosen, and what was cut
// or left out.
std::vector<std::string> remarks(const result& got);

// Groups of bars, one for each setting; `name` says what is under a group.
chart bars(const result& got, std::string title, const std::string& figure, std::string y_title,
           const filter& which, const std::function<std::string(const cell&)>& name);

// A line for each runtime against the number of fibers.
chart lines(const result& got, std::string title, const std::string& figure, std::string y_title,
            const filter& which);

// "1 processor", "2 processors".
std::string count(std::uint64_t n, const std::string& noun);

// "median of 5 repetitions (lowest to highest)", with "2 processors, " in front.
std::string repetitions_of(const result& got);
std::string conditions(const result& got, std::uint64_t processors);

}  // namespace tool
