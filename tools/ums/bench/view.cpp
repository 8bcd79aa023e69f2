// SPDX-License-Identifier: MIT
#include "view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

namespace tool {

namespace {

std::string separated(std::string digits) {
    for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
        digits.insert(static_cast<std::size_t>(at), 1, ',');
    return digits;
}

// The widths of columns: labels to the left, figures to the right, and the spread behind in a
// column of its own.
struct widths {
    std::size_t text = 0;
    std::size_t spread = 0;

    std::size_t all() const { return text + (spread == 0 ? 0 : spread + 3); }
};

}  // namespace

std::string human(std::uint64_t value) { return separated(fmt::format("{}", value)); }

std::string human(double value) {
    const double size = std::abs(value);
    if (size >= 999.5)
        return fmt::format("{}{}", value < 0 ? "-" : "", separated(fmt::format("{:.0f}", size)));
    if (value == std::floor(value)) return fmt::format("{:.0f}", value);
    return fmt::format("{:.{}f}", value, size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

std::string human_bytes(double bytes) {
    constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB"};
    std::size_t unit = 0;
    while (std::abs(bytes) >= 1024 * 10 && unit + 1 < units.size()) {
        bytes /= 1024;
        ++unit;
    }
    return human(bytes) + " " + units[unit];
}

entry entry_of(const std::optional<spread>& figure, format how) {
    if (!figure) return {"-", "", false};
    const auto lowest = how(figure->lowest);
    const auto highest = how(figure->highest);
    return {how(figure->median), lowest == highest ? "" : lowest + " to " + highest, false};
}

entry entry_of(const cell& one, const std::string& figure, format how) {
    if (!one.error.empty()) return {"failed", "", true};
    auto shown = entry_of(one.figure(figure), how);
    if (one.settings.contains("yields_run")) shown.text += "*";
    return shown;
}

std::string text_of(const table& shown) {
    assert(shown.labels <= shown.header.size() && "a table has more labels than columns");
    std::vector<widths> columns(shown.header.size());
    for (std::size_t c = 0; c < columns.size(); ++c) {
        for (const auto& row : shown.rows) {
            assert(row.size() == columns.size() && "a row does not fit its header");
            columns[c].text = std::max(columns[c].text, row[c].text.size());
            columns[c].spread = std::max(columns[c].spread, row[c].spread.size());
        }
        const auto title = shown.header[c].size();
        if (title > columns[c].all()) columns[c].text += title - columns[c].all();
    }

    std::string text = shown.title + "\n\n";
    const auto add_row = [&](auto add_entry) {
        std::string line;
        for (std::size_t c = 0; c < columns.size(); ++c) {
            line.append(c == 0 ? 2 : 3, ' ');
            add_entry(line, c, columns[c]);
        }
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + "\n";
    };
    add_row([&](std::string& line, std::size_t c, const widths& width) {
        // A title stands over the figures, not over their spreads, if it fits there.
        const auto& title = shown.header[c];
        if (c < shown.labels)
            line += fmt::format("{:<{}}", title, width.all());
        else if (title.size() <= width.text)
            line += fmt::format("{:>{}}{:{}}", title, width.text, "", width.all() - width.text);
        else
            line += fmt::format("{:<{}}", title, width.all());
    });
    for (const auto& row : shown.rows)
        add_row([&](std::string& line, std::size_t c, const widths& width) {
            const auto& [figure, range, is_error] = row[c];
            line += c < shown.labels && !figure.empty() &&
                            !std::isdigit(static_cast<unsigned char>(figure[0]))
                        ? fmt::format("{:<{}}", figure, width.text)
                        : fmt::format("{:>{}}", figure, width.text);
            if (width.spread == 0) return;
            line += fmt::format(" {:<{}}", range.empty() ? "" : fmt::format("({})", range),
                                width.spread + 2);
        });
    if (!shown.notes.empty()) text += "\n";
    for (const auto& note : shown.notes) text += "  " + note + "\n";
    return text;
}

std::string text_of(const claim& shown) {
    std::string text = shown.says + "\n";
    for (const auto& one : shown.bars)
        text += fmt::format("  {:<20}{:>14}\n", one.runtime, one.text);
    return text;
}

nlohmann::ordered_json chart::to_json() const {
    nlohmann::ordered_json made = {{"title", title},
                                   {"kind", drawn == kind::bars ? "bars" : "lines"},
                                   {"x", x_title},
                                   {"y", y_title},
                                   {"log", log_y},
                                   {"labels", labels},
                                   {"series", nlohmann::ordered_json::array()}};
    for (const auto& [runtime, points] : all) {
        auto drawn_points = nlohmann::ordered_json::array();
        for (const auto& [x, y] : points)
            drawn_points.push_back(
                {{"x", x}, {"y", y.median}, {"low", y.lowest}, {"high", y.highest}});
        made["series"].push_back({{"runtime", runtime}, {"points", drawn_points}});
    }
    return made;
}

}  // namespace tool
