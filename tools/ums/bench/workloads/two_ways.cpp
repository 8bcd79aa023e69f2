// SPDX-License-Identifier: MIT
#include "two_ways.hpp"

#include <fmt/format.h>

#include "../compare.hpp"

namespace tool {

std::vector<setting> two_ways::plan(const bench_options& options,
                                    std::vector<std::string>& notes) const {
    std::vector<setting> all;
    for (const auto p : options.processors) {
        all.push_back(group(first_, p, first_.fibers, options, notes));
        for (const auto n : given_or(options.fibers, {second_.fibers}))
            all.push_back(group(second_, p, n, options, notes));
    }
    return all;
}

view two_ways::show(const result& got) const {
    view made;
    for (const auto p : got.options.processors) {
        const auto which = where("processors", p);
        auto shown = by_runtime(
            got, fmt::format("{}: {}, {}", name(), titles_.table, conditions(got, p)),
            {{"way", "way"}, {"fibers", std::string{titles_.fibers}}}, "ns_per_op", which);
        shown.notes = ratios(got, "ns_per_op", "way", " ", which);
        made.tables.push_back(std::move(shown));
        made.charts.push_back(
            bars(got, fmt::format("{}, {}", titles_.chart, count(p, "processor")), "ns_per_op",
                 std::string{titles_.axis}, which, [this](const cell& one) {
                     return one.settings["way"] == first_.name
                                ? std::string{first_.label}
                                : fmt::format("{} {}", human(one.fibers()), second_.label);
                 }));
    }
    return made;
}

setting two_ways::group(const way& which, std::uint64_t processors, std::uint64_t fibers,
                        const bench_options& options, std::vector<std::string>& notes) const {
    setting made;
    for (const auto& runtime : chosen(options, notes)) {
        auto one = way_cell(options, runtime, std::string{which.name}, processors, fibers);
        complete(one);
        made.push_back(std::move(one));
    }
    return made;
}

}  // namespace tool
