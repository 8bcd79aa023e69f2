// SPDX-License-Identifier: MIT
#include "compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <iterator>

namespace tool {

namespace {

entry label_of(const cell& one, const std::string& key) {
    if (!one.settings.contains(key)) return {};
    const auto& value = one.settings[key];
    return {value.is_number() ? human(value.get<std::uint64_t>()) : value.get<std::string>(), "",
            false};
}

const cell* find(const setting& group, const std::string& runtime) {
    const auto found = std::find_if(group.begin(), group.end(),
                                    [&](const cell& one) { return one.runtime == runtime; });
    return found == group.end() ? nullptr : &*found;
}

bool is_ours(std::string_view runtime) { return runtime.starts_with("ums"); }

// Those for which ours() holds first, otherwise in their order. Not by std::stable_partition():
// clang calls what it uses of the library deprecated.
template <class T, class Ours>
std::vector<T> ours_first(const std::vector<T>& all, Ours ours) {
    std::vector<T> ordered;
    for (const bool want : {true, false})
        std::copy_if(all.begin(), all.end(), std::back_inserter(ordered),
                     [&](const T& one) { return ours(one) == want; });
    return ordered;
}

// Those of libums first, otherwise in the order of the plan.
std::vector<std::string> runtimes_of(const result& got, const filter& which) {
    std::vector<std::string> runtimes;
    for (const auto& group : got.plan)
        for (const auto& one : group)
            if (which(one) &&
                std::find(runtimes.begin(), runtimes.end(), one.runtime) == runtimes.end())
                runtimes.push_back(one.runtime);
    return ours_first(runtimes, is_ours);
}

// The cells of a setting, those of libums first.
std::vector<const cell*> in_order(const setting& group) {
    std::vector<const cell*> cells;
    for (const auto& one : group) cells.push_back(&one);
    return ours_first(cells, [](const cell* one) { return is_ours(one->runtime); });
}

template <class Use>
void for_each(const result& got, const filter& which, Use use) {
    for (const auto& group : got.plan)
        if (!group.empty() && which(group.front())) use(group);
}

}  // namespace

filter everything() {
    return [](const cell&) { return true; };
}

filter where(std::string key, json value) {
    return [key = std::move(key), value = std::move(value)](const cell& one) {
        return one.settings.contains(key) && one.settings[key] == value;
    };
}

table by_runtime(const result& got, std::string title, std::vector<label> labels,
                 const std::string& figure, const filter& which) {
    if (!got.options.detectors.empty()) labels.push_back({"detector", "detector"});
    table made;
    made.title = std::move(title);
    made.labels = labels.size();
    for (const auto& one : labels) made.header.push_back(one.title);
    const auto runtimes = runtimes_of(got, which);
    made.header.insert(made.header.end(), runtimes.begin(), runtimes.end());
    for_each(got, which, [&](const setting& group) {
        std::vector<entry> row;
        for (const auto& one : labels) row.push_back(label_of(group.front(), one.key));
        for (const auto& runtime : runtimes) {
            const auto* const one = find(group, runtime);
            row.push_back(one == nullptr ? entry{"-", "", false} : entry_of(*one, figure));
        }
        made.rows.push_back(std::move(row));
    });
    return made;
}

table by_figure(const result& got, std::string title, const std::vector<label>& labels,
                std::vector<figure> figures, const filter& which) {
    // A column in which no row has anything is left out, unless there is no other.
    const auto is_empty = [&](const figure& one) {
        bool found = false;
        for_each(got, which, [&](const setting& group) {
            for (const auto& each : group) found |= each.figure(one.key).has_value();
        });
        return !found;
    };
    if (!std::all_of(figures.begin(), figures.end(), is_empty)) std::erase_if(figures, is_empty);
    table made;
    made.title = std::move(title);
    made.labels = labels.size() + 1;
    made.header.push_back("runtime");
    for (const auto& one : labels) made.header.push_back(one.title);
    for (const auto& one : figures) made.header.push_back(one.title);
    for_each(got, which, [&](const setting& group) {
        for (const auto* const one : in_order(group)) {
            std::vector<entry> row{{one->runtime, "", false}};
            for (const auto& each : labels) row.push_back(label_of(*one, each.key));
            for (const auto& each : figures) row.push_back(entry_of(*one, each.key, each.how));
            made.rows.push_back(std::move(row));
        }
    });
    return made;
}

table by_way(const result& got, std::string title, const std::string& figure, const filter& which) {
    table made;
    made.title = std::move(title);
    made.header = {"runtime"};
    const bool is_by_fibers = !got.options.fibers.empty();
    if (is_by_fibers) made.header.push_back("fibers");
    made.labels = made.header.size();
    std::vector<std::pair<const cell*, std::size_t>> found;  // Each with its column.
    const auto column_of = [&](const std::string& way) {
        const auto at = std::find(made.header.begin(), made.header.end(), way);
        if (at == made.header.end()) {
            made.header.push_back(way);
            return made.header.size() - 1;
        }
        return static_cast<std::size_t>(at - made.header.begin());
    };
    for_each(got, which, [&](const setting& group) {
        for (const auto& one : group) {
            assert(one.settings.contains("way") && "a cell does its work in no way");
            found.push_back({&one, column_of(one.settings["way"].get<std::string>())});
        }
    });
    for (const auto& runtime : runtimes_of(got, which))
        for (const auto& [one, column] : found) {
            if (one->runtime != runtime) continue;
            std::vector<entry> labels{{runtime, "", false}};
            if (is_by_fibers) labels.push_back({human(one->fibers()), "", false});
            const auto at = std::find_if(made.rows.begin(), made.rows.end(), [&](const auto& row) {
                return std::equal(labels.begin(), labels.end(), row.begin(),
                                  [](const entry& a, const entry& b) { return a.text == b.text; });
            });
            assert(column < made.header.size() && "a way has no column");
            auto& row = at != made.rows.end()
                            ? *at
                            : made.rows.emplace_back(made.header.size(), entry{"-", "", false});
            std::copy(labels.begin(), labels.end(), row.begin());
            row[column] = entry_of(*one, figure);
        }
    return made;
}

std::string compared(double ours, double theirs, comparison words) {
    assert(ours > 0 && theirs > 0 && "a figure is not positive");
    const double ratio = std::max(ours / theirs, theirs / ours);
    if (ratio < 1.05) return "the same";
    // Two digits tell enough.
    const double unit = std::pow(10, std::floor(std::log10(ratio)) - 1);
    const double rounded = std::round(ratio / unit) * unit;
    return fmt::format("{} times {}",
                       rounded < 10 ? fmt::format("{:.1f}", rounded) : human(std::round(rounded)),
                       ours < theirs ? words.lower : words.higher);
}

std::string compared_with(double ours, double theirs, const std::string& name) {
    const auto found = compared(ours, theirs, of_times);
    return found == "the same" ? "as fast as " + name : found + " than " + name;
}

const setting* setting_of(const result& got, const filter& which) {
    for (const auto& group : got.plan)
        if (std::any_of(group.begin(), group.end(), which)) return &group;
    return nullptr;
}

std::optional<double> median_of(const setting& group, const std::string& runtime,
                                const std::string& figure, const filter& which) {
    for (const auto& one : group)
        if (one.runtime == runtime && which(one))
            if (const auto found = one.figure(figure)) return found->median;
    return std::nullopt;
}

std::vector<claim::bar> bars_of(const setting& group, const std::string& figure,
                                const filter& which, format text) {
    std::vector<claim::bar> bars;
    for (const auto* const one : in_order(group)) {
        if (!which(*one)) continue;
        if (const auto found = one->figure(figure))
            bars.push_back({one->runtime, found->median, text(found->median)});
    }
    return bars;
}

std::vector<std::string> ratios(const result& got, const std::string& figure,
                                const std::string& key, const std::string& unit,
                                const filter& which, comparison words) {
    std::vector<std::string> lines;
    const auto runtimes = runtimes_of(got, which);
    std::size_t longest = 0;
    for (const auto& other : runtimes) longest = std::max(longest, other.size());
    for (const auto& other : runtimes) {
        if (other == "ums") continue;
        std::vector<std::pair<json, std::vector<double>>> by_value;
        for_each(got, which, [&](const setting& group) {
            const auto* const ours = find(group, "ums");
            const auto* const theirs = find(group, other);
            if (ours == nullptr || theirs == nullptr || ours->fibers() != theirs->fibers()) return;
            const auto ours_is = ours->figure(figure);
            const auto theirs_is = theirs->figure(figure);
            if (!ours_is || !theirs_is || ours_is->median <= 0 || theirs_is->median <= 0) return;
            const auto& value = ours->settings.at(key);
            if (by_value.empty() || by_value.back().first != value) by_value.push_back({value, {}});
            by_value.back().second.push_back(ours_is->median / theirs_is->median);
        });
        if (by_value.empty()) continue;
        std::string line = fmt::format("ums against {:<{}}", other, longest);
        for (const auto& [value, found] : by_value) {
            line += "   " + compared(spread_of(found).median, 1, words);
            if (value.is_string())
                line += fmt::format(" ({})", value.get<std::string>());
            else if (!unit.empty())
                line += fmt::format(" ({})", count(value.get<std::uint64_t>(), unit));
        }
        lines.push_back(std::move(line));
    }
    return lines;
}

std::vector<std::string> remarks(const result& got) {
    std::vector<std::string> all;
    const auto add = [&](std::string one) {
        if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(std::move(one));
    };
    for (const auto& group : got.plan)
        for (const auto& one : group) {
            if (!one.error.empty())
                add(fmt::format("FAILED: {}, {}: {}", one.runtime, one.label(), one.error));
            if (one.settings.contains("yields_run"))
                add("* would take too long, so each ran fewer yields; its row in the JSON says how "
                    "many (yields_run). Those that ran as many are one measurement.");
            if (one.error.empty() && one.settings.contains("variant")) {
                const auto way = one.settings.contains("way")
                                     ? one.settings["way"].get<std::string>() + ", "
                                     : "";
                add(fmt::format("{}{} on {}: {}, the fastest of its ways.", way, one.runtime,
                                count(one.processors, "processor"),
                                one.settings["variant"].get<std::string>()));
            }
        }
    for (const auto& note : got.notes) add(note);
    return all;
}

chart bars(const result& got, std::string title, const std::string& figure, std::string y_title,
           const filter& which, const std::function<std::string(const cell&)>& name) {
    chart made;
    made.title = std::move(title);
    made.y_title = std::move(y_title);
    made.log_y = true;
    for_each(got, which, [&](const setting& group) {
        made.labels.push_back(name(group.front()));
        if (!got.options.detectors.empty() && group.front().settings.contains("detector"))
            made.labels.back() += ", " + group.front().settings["detector"].get<std::string>();
    });
    for (const auto& runtime : runtimes_of(got, which)) {
        series bars_of{runtime, {}};
        double index = 0;
        for_each(got, which, [&](const setting& group) {
            const auto* const one = find(group, runtime);
            const auto value = one == nullptr ? std::nullopt : one->figure(figure);
            if (value) bars_of.points.push_back({index, *value});
            ++index;
        });
        assert(index == static_cast<double>(made.labels.size()) && "bars stand over no label");
        if (!bars_of.points.empty()) made.all.push_back(std::move(bars_of));
    }
    return made;
}

chart lines(const result& got, std::string title, const std::string& figure, std::string y_title,
            const filter& which) {
    chart made;
    made.title = std::move(title);
    made.drawn = chart::kind::lines;
    made.x_title = "fibers";
    made.y_title = std::move(y_title);
    made.log_y = true;
    for (const auto& runtime : runtimes_of(got, which)) {
        series line{runtime, {}};
        for_each(got, which, [&](const setting& group) {
            const auto* const one = find(group, runtime);
            const auto value = one == nullptr ? std::nullopt : one->figure(figure);
            if (value) line.points.push_back({static_cast<double>(one->fibers()), *value});
        });
        if (!line.points.empty()) made.all.push_back(std::move(line));
    }
    return made;
}

std::string count(std::uint64_t n, const std::string& noun) {
    return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

std::string repetitions_of(const result& got) {
    std::uint64_t most = 0;
    for (const auto& group : got.plan)
        for (const auto& one : group)
            if (one.settings.contains("repetitions"))
                most = std::max(most, one.settings["repetitions"].get<std::uint64_t>());
    return fmt::format("median of {} (lowest to highest)", count(most, "repetition"));
}

std::string conditions(const result& got, std::uint64_t processors) {
    return fmt::format("{}, {}", count(processors, "processor"), repetitions_of(got));
}

}  // namespace tool
