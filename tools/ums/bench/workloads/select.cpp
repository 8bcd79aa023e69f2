// SPDX-License-Identifier: MIT

// select: one receiver takes whatever comes first from several channels.

#include <fmt/format.h>

#include "../../usage.hpp"
#include "../compare.hpp"

namespace tool {

namespace {

class select final : public workload {
public:
    std::string_view name() const override { return "select"; }
    std::string_view about() const override {
        return "one receiver takes what comes first out of 2 or 8 channels";
    }
    std::vector<std::string> runtimes() const override { return {"std::thread", "go", "ums"}; }

    void check(const bench_options& options) const override {
        workload::check(options);
        for (const auto n : options.fibers)
            if (n != 3 && n != 9)
                throw usage_error{
                    fmt::format("--fibers: the receiver and 2 or 8 senders, so 3 or 9, not {}", n)};
    }

    std::vector<setting> plan(const bench_options& options,
                              std::vector<std::string>& notes) const override {
        std::vector<setting> all;
        for (const auto p : options.processors)
            for (const std::string way : {"unbuffered", "buffered"})
                for (const auto n : given_or(options.fibers, {3, 9})) {
                    setting group;
                    for (const auto& runtime : chosen(options, notes))
                        group.push_back(way_cell(options, runtime, way, p, n));
                    all.push_back(std::move(group));
                }
        return all;
    }

    view show(const result& got) const override {
        view made;
        for (const auto p : got.options.processors) {
            const auto which = where("processors", p);
            auto shown = by_runtime(got, fmt::format("select: ns per item, {}", conditions(got, p)),
                                    {{"way", "way"}, {"fibers", "fibers"}}, "ns_per_op", which);
            shown.notes = ratios(got, "ns_per_op", "way", " ", which);
            shown.notes.push_back(
                "One of the fibers receives; each of the others feeds a channel of its own. "
                "std::thread: queues under one mutex.");
            made.tables.push_back(std::move(shown));
            made.charts.push_back(bars(
                got, fmt::format("select, {}", count(p, "processor")), "ns_per_op", "ns per item",
                which, [](const cell& one) {
                    return fmt::format("{}, {} channels", one.settings["way"].get<std::string>(),
                                       one.fibers() - 1);
                }));
        }
        return made;
    }
};

}  // namespace

std::unique_ptr<workload> make_select() { return std::make_unique<select>(); }

}  // namespace tool
