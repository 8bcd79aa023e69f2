// SPDX-License-Identifier: MIT
#include "cell.hpp"

#include <fmt/format.h>

#include <cmath>

namespace tool {

namespace {

// Three decimals are more than any of the figures is good for.
json rounded(double value) {
    const double thousandths = std::round(value * 1000) / 1000;
    if (thousandths == std::floor(thousandths) && std::abs(thousandths) < 1e15)
        return static_cast<std::int64_t>(thousandths);
    return thousandths;
}

}  // namespace

std::optional<spread> cell::figure(const std::string& name) const {
    const auto found = samples.find(name);
    if (!error.empty() || found == samples.end()) return std::nullopt;
    return spread_of(found->second);
}

std::string cell::label() const {
    std::string text;
    for (const auto& [key, value] : settings.items()) {
        if (key == "repetitions" || key == "variant") continue;
        const auto shown = value.is_string() ? value.get<std::string>() : value.dump();
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", key, shown);
    }
    return text;
}

json cell::row() const {
    json row = {{"runtime", runtime}};
    row.update(settings);
    if (!error.empty()) {
        row["error"] = error;
        return row;
    }
    for (const auto& [name, values] : samples) {
        const auto all = spread_of(values);
        row[name] = rounded(all.median);
        row[name + "_min"] = rounded(all.lowest);
        row[name + "_max"] = rounded(all.highest);
    }
    return row;
}

}  // namespace tool
